// Command cert-manager is the certificate authority of the stack: the real
// controllers and the real CA injector of cert-manager in one process. The
// module publishes them as packages, its own commands are not part of it.
//
// It does not serve cert-manager's admission webhook, nor ACME, Vault or Venafi
// issuers: providers ask for SelfSigned and CA certificates only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	// Each of these adds its constructor to controller.Known.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

// clusterNamespace is where the Secrets of ClusterIssuers live.
const clusterNamespace = "cert-manager"

func main() {
	klog.InitFlags(nil)
	flag.Parse() // --kubeconfig is controller-runtime's
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	ctrl.SetLogger(klog.Background())
	if err := run(logr.NewContext(ctx, klog.Background())); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

// run holds both halves until the context ends or one of them fails.
func run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var halves sync.WaitGroup
	failures := make(chan error, 2)
	for name, half := range map[string]func(context.Context) error{"controllers": controllers, "injector": injector} {
		halves.Go(func() {
			defer cancel()
			if err := half(ctx); err != nil {
				failures <- fmt.Errorf("%s: %w", name, err)
			}
		})
	}
	halves.Wait()
	close(failures)
	var all error
	for err := range failures {
		all = errors.Join(all, err)
	}
	return all
}

// controllers runs everything that turns Issuers and Certificates into Secrets.
func controllers(ctx context.Context) error {
	kubeconfig := flag.Lookup("kubeconfig").Value.String()
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   100,
		KubernetesAPIBurst: 200,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: clusterNamespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: 2 * time.Second,
			CertificateRequestMaximumBackoffDuration: time.Minute,
		},
	})
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for name, construct := range controller.Known() {
		one, err := construct(factory)
		if err != nil {
			return fmt.Errorf("constructing %s: %w", name, err)
		}
		running.Go(func() {
			if err := one.Run(2, ctx); err != nil {
				klog.ErrorS(err, "controller ended", "controller", name)
			}
		})
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	running.Wait()
	return nil
}
