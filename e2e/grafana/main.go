// Validates dashboards against Grafana's schema: a missing member, an unknown one and a wrong type are errors. The schema is
// that of Grafana's Foundation SDK, which has the panels of Grafana and the queries of Prometheus; it does not check the
// values of enumerations.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func main() {
	plugins.RegisterDefaultPlugins()
	invalid := 0
	for _, file := range os.Args[1:] {
		if err := check(file); err != nil {
			invalid++
			fmt.Printf("%s: %v\n", file, err)
		}
	}
	fmt.Printf("%d dashboards, %d invalid\n", len(os.Args)-1, invalid)
	if invalid > 0 || len(os.Args) == 1 {
		os.Exit(1)
	}
}

func check(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var read dashboard.Dashboard
	if err := unlessEmpty(read.UnmarshalJSONStrict(text)); err != nil {
		return err
	}
	return unlessEmpty(read.Validate())
}

// The functions of the schema return a list of errors, which may be empty and is not nil then.
func unlessEmpty(err error) error {
	var list cog.BuildErrors
	if errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}
