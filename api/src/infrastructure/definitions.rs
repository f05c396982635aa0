//! The CRDs of `infrastructure.cluster.x-k8s.io`.

use schemars::JsonSchema;

use super::{v1beta1, v1beta2};
use crate::crd::{AGE, Column, ConversionService, Definition, Version, schema};
use crate::kind::Kind;

const SERVICE: ConversionService = ConversionService {
    name: "capm3-webhook-service",
    namespace: "capm3-system",
    certificate: "capm3-system/capm3-serving-cert",
};

const LABELS: &[(&str, &str)] = &[
    ("cluster.x-k8s.io/provider", "infrastructure-metal3"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
];

/// A data template has no owner, so `clusterctl move` needs a label to include it.
const MOVED_LABELS: &[(&str, &str)] = &[
    ("cluster.x-k8s.io/provider", "infrastructure-metal3"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
    ("clusterctl.cluster.x-k8s.io/move", ""),
];

/// The plural of Metal3Data is not the one Cluster API computes, so its installer must skip the check.
const IRREGULAR_PLURAL: &[(&str, &str)] = &[("clusterctl.cluster.x-k8s.io/skip-crd-name-preflight-check", "")];

const CLUSTER: Column = Column::string("Cluster", r".metadata.labels.cluster\.x-k8s\.io/cluster-name")
    .described("Cluster the object belongs to");
const PROVISIONED: Column = Column::string("Provisioned", ".status.initialization.provisioned")
    .described("Whether the infrastructure is there");
const READY: Column = Column::string("Ready", ".status.ready").described("Whether the infrastructure is there");
const ENDPOINT: Column =
    Column::string("Endpoint", ".spec.controlPlaneEndpoint").described("Where the API server is reached");
const PROVIDER_ID: Column =
    Column::string("ProviderID", ".spec.providerID").described("Identity of the machine for Cluster API");

const CLUSTER_COLUMNS: &[Column] = &[
    AGE,
    PROVISIONED,
    Column::string("Error", ".status.deprecated.v1beta1.failureReason").described("What made progress impossible"),
    CLUSTER,
    ENDPOINT,
    Column::string("Role", ".status.role")
        .wide()
        .described("Role of the object for its Cluster"),
    Column::string("Source", ".status.controlPlaneEndpoint.source")
        .wide()
        .described("Where the endpoint came from"),
];
const OLDER_CLUSTER_COLUMNS: &[Column] = &[
    AGE,
    READY,
    Column::string("Error", ".status.failureReason").described("What made progress impossible"),
    CLUSTER,
    ENDPOINT,
];
const MACHINE_COLUMNS: &[Column] = &[AGE, PROVIDER_ID, PROVISIONED, CLUSTER];
const OLDER_MACHINE_COLUMNS: &[Column] = &[
    AGE,
    PROVIDER_ID,
    READY,
    CLUSTER,
    Column::string("Phase", ".status.phase").described("Not used"),
];
const DATA_TEMPLATE_COLUMNS: &[Column] = &[CLUSTER, AGE];
const REMEDIATION_COLUMNS: &[Column] = &[
    Column::string("Retry limit", ".spec.strategy.retryLimit").described("How often it is tried"),
    Column::string("Retry count", ".status.retryCount").described("Tries so far"),
    Column::string("Last Remediated", ".status.lastRemediated").described("When the last try began"),
    Column::string("Strategy", ".spec.strategy.type").described("What is tried"),
    Column::string("Phase", ".status.phase").described("Phase of the remediation"),
];

/// The definitions, by kind.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    // differs (`cluster-template-conversion`): the Go manager gives Metal3ClusterTemplate no service, so its conversion
    // loses members.
    vec![
        definition::<v1beta1::Metal3Cluster, v1beta2::Metal3Cluster>(
            "metal3cluster",
            &["m3c", "m3cluster", "m3clusters", "metal3c", "metal3cluster"],
            [OLDER_CLUSTER_COLUMNS, CLUSTER_COLUMNS],
        ),
        with_required_spec::<v1beta2::Metal3ClusterTemplate>(definition::<
            v1beta1::Metal3ClusterTemplate,
            v1beta2::Metal3ClusterTemplate,
        >("metal3clustertemplate", &["m3ct"], [&[], &[]])),
        Definition {
            annotations: IRREGULAR_PLURAL,
            ..definition::<v1beta1::Metal3Data, v1beta2::Metal3Data>(
                "metal3data",
                &["m3d", "m3data", "m3datas", "metal3d", "metal3data"],
                [&[AGE], &[AGE]],
            )
        },
        definition::<v1beta1::Metal3DataClaim, v1beta2::Metal3DataClaim>(
            "metal3dataclaim",
            &["m3dc", "m3dataclaim", "m3dataclaims", "metal3dc", "metal3dataclaim"],
            [&[AGE], &[AGE]],
        ),
        data_template(),
        definition::<v1beta1::Metal3Machine, v1beta2::Metal3Machine>(
            "metal3machine",
            &["m3m", "m3machine", "m3machines", "metal3m", "metal3machine"],
            [OLDER_MACHINE_COLUMNS, MACHINE_COLUMNS],
        ),
        machine_template(),
        definition::<v1beta1::Metal3Remediation, v1beta2::Metal3Remediation>(
            "metal3remediation",
            &["m3r", "m3remediation"],
            [REMEDIATION_COLUMNS, REMEDIATION_COLUMNS],
        ),
        definition::<v1beta1::Metal3RemediationTemplate, v1beta2::Metal3RemediationTemplate>(
            "metal3remediationtemplate",
            &[
                "m3rt",
                "m3remediationtemplate",
                "m3remediationtemplates",
                "metal3rt",
                "metal3remediationtemplate",
            ],
            [&[], &[]],
        ),
    ]
}

fn data_template() -> Definition {
    Definition {
        labels: MOVED_LABELS,
        ..definition::<v1beta1::Metal3DataTemplate, v1beta2::Metal3DataTemplate>(
            "metal3datatemplate",
            &[
                "m3dt",
                "m3datatemplate",
                "m3datatemplates",
                "metal3dt",
                "metal3datatemplate",
            ],
            [DATA_TEMPLATE_COLUMNS, DATA_TEMPLATE_COLUMNS],
        )
    }
}

fn machine_template() -> Definition {
    with_required_spec::<v1beta2::Metal3MachineTemplate>(definition::<
        v1beta1::Metal3MachineTemplate,
        v1beta2::Metal3MachineTemplate,
    >(
        "metal3machinetemplate",
        &[
            "m3mt",
            "m3machinetemplate",
            "m3machinetemplates",
            "metal3mt",
            "metal3machinetemplate",
        ],
        [&[AGE], &[AGE]],
    ))
}

/// What the kinds of the group share: an older version, a stored one, and a service that converts between them.
fn definition<Older: Kind<Spec: JsonSchema, Status: JsonSchema>, Stored: Kind<Spec: JsonSchema, Status: JsonSchema>>(
    singular: &'static str,
    short_names: &'static [&'static str],
    [older_columns, columns]: [&'static [Column]; 2],
) -> Definition {
    let versions = vec![
        Version::older::<Older>(older_columns),
        Version::stored::<Stored>(columns),
    ];
    Definition {
        categories: &["cluster-api"],
        labels: LABELS,
        conversion: Some(SERVICE),
        ..Definition::new::<Stored>(singular, short_names, versions)
    }
}

/// Requires a spec in the stored version. The older version does not require one.
fn with_required_spec<Stored: Kind<Spec: JsonSchema, Status: JsonSchema>>(mut definition: Definition) -> Definition {
    for version in definition.versions.iter_mut().filter(|version| version.storage) {
        version.schema = || schema::root_schema::<Stored>(true);
    }
    definition
}
