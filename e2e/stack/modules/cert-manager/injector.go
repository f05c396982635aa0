package main

import (
	"context"

	cmapi "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	"github.com/cert-manager/cert-manager/pkg/util"
	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// The field manager is taken from the user agent: with an empty one every injection fails.
const injectorAgent = "cainjector"

// injector writes certificate authorities into webhook configurations and conversion webhooks.
func injector(ctx context.Context) error {
	var builder runtime.SchemeBuilder
	builder.Register(core.AddToScheme, admission.AddToScheme, extensions.AddToScheme, cmapi.AddToScheme)
	scheme := runtime.NewScheme()
	if err := builder.AddToScheme(scheme); err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(util.RestConfigWithUserAgent(config, injectorAgent), ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics.Options{BindAddress: "0"},
		// Secrets are read by name: a cache of all of them would be the largest thing in this process.
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&core.Secret{}}}},
	})
	if err != nil {
		return err
	}
	if err := cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
			cainjector.CustomResourceDefinitionName:       true,
		},
	}); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
