use super::*;
use crate::uri::UriError;

const DISK: ImageFields<'_> = ImageFields {
    url: "http://images.example/os.qcow2",
    checksum: Some("http://images.example/os.sum"),
    checksum_type: None,
    disk_format: None,
};
const ISO: ImageFields<'_> = ImageFields {
    url: "https://images.example/live.iso",
    checksum: None,
    checksum_type: None,
    disk_format: Some("live-iso"),
};
const OCI: ImageFields<'_> = ImageFields {
    url: "oci://registry.example/os:v1",
    checksum: None,
    checksum_type: None,
    disk_format: None,
};

fn both_checks(fields: &ImageFields<'_>) -> [Vec<ImageError>; 2] {
    [check_machine_image(fields), check_host_image(fields)]
}

#[test]
fn complete_images_pass_both_checks() {
    let upper_case = ImageFields {
        url: "OCI://registry.example/os",
        ..OCI
    };
    let digest = ImageFields {
        checksum: Some("d41d8cd98f00b204e9800998ecf8427e"),
        checksum_type: Some("md5"),
        ..DISK
    };
    let left_empty = ImageFields {
        checksum_type: Some(""),
        disk_format: Some(""),
        ..DISK
    };
    for fields in [DISK, ISO, OCI, upper_case, digest, left_empty] {
        assert_eq!(both_checks(&fields), [vec![], vec![]], "{fields:?}");
    }
}

#[test]
fn disk_image_needs_a_checksum() {
    for checksum in [None, Some("")] {
        let fields = ImageFields { checksum, ..DISK };
        assert_eq!(
            both_checks(&fields),
            [vec![ImageError::ChecksumMissing], vec![ImageError::ChecksumMissing]]
        );
    }
}

#[test]
fn oci_image_rejects_a_checksum_and_on_a_machine_its_type() {
    let fields = ImageFields {
        checksum: Some("abc"),
        checksum_type: Some("sha256"),
        ..OCI
    };
    let machine = vec![ImageError::ChecksumForbidden, ImageError::ChecksumTypeForbidden];
    assert_eq!(both_checks(&fields), [machine, vec![ImageError::ChecksumForbidden]]);
    let type_alone = ImageFields {
        checksum: None,
        ..fields
    };
    assert_eq!(check_host_image(&type_alone), [], "the host ignores a type");
    assert!(matches!(Image::resolve(&type_alone), Ok(Image::Oci { .. })));
}

#[test]
fn machine_without_url_and_checksum_has_no_image() {
    assert_eq!(check_machine_image(&ImageFields::default()), [ImageError::Missing]);
    let empty_checksum = ImageFields {
        checksum: Some(""),
        ..ImageFields::default()
    };
    assert_eq!(
        check_machine_image(&empty_checksum),
        [ImageError::UrlMissing, ImageError::ChecksumMissing]
    );
}

#[test]
fn relative_url_is_rejected_by_both_checks() {
    let fields = ImageFields { url: "i/a", ..DISK };
    let errors = vec![ImageError::Url(UriError::NotAbsolute)];
    assert_eq!(both_checks(&fields), [errors.clone(), errors]);
}

#[test]
fn only_the_host_limits_schemes() {
    for (url, scheme) in [
        ("file:///etc/passwd", "file"),
        ("S3://bucket/os", "s3"),
        ("/os.img", ""),
    ] {
        let fields = ImageFields { url, ..DISK };
        let refused = ImageError::UrlScheme {
            scheme: scheme.to_owned(),
        };
        assert_eq!(both_checks(&fields), [vec![], vec![refused]], "{url}");
    }
}

#[test]
fn checksum_of_a_machine_that_begins_like_a_url_must_be_one() {
    let fields = ImageFields {
        checksum: Some("http://bad host/%zz"),
        ..DISK
    };
    let [error] = check_machine_image(&fields).try_into().unwrap();
    assert!(matches!(error, ImageError::ChecksumUrl(_)), "{error:?}");
    assert_eq!(error.field(), ImageField::Checksum);
    assert_eq!(check_host_image(&fields), [], "the host does not check it");
}

#[test]
fn host_refuses_an_unknown_checksum_type() {
    let fields = ImageFields {
        checksum_type: Some("crc32"),
        ..DISK
    };
    assert_eq!(
        check_host_image(&fields),
        [ImageError::ChecksumType {
            found: "crc32".to_owned()
        }]
    );
    assert_eq!(
        check_host_image(&ImageFields {
            checksum_type: Some("crc32"),
            ..ISO
        }),
        []
    );
}

#[test]
fn resolving_distinguishes_the_kinds_of_images() {
    let url = Location(DISK.url);
    let typed = ImageFields {
        checksum: Some("ab12"),
        checksum_type: Some("sha512"),
        disk_format: Some("raw"),
        ..DISK
    };
    let checksum = Checksum {
        text: Location("ab12"),
        algorithm: Some(HashAlgorithm::Sha512),
    };
    assert_eq!(
        Image::resolve(&typed),
        Ok(Image::Disk {
            url,
            format: Some(DiskFormat::Raw),
            checksum
        })
    );
    let auto = ImageFields {
        checksum_type: Some("auto"),
        ..DISK
    };
    let checksum = Checksum {
        text: Location("http://images.example/os.sum"),
        algorithm: None,
    };
    assert_eq!(
        Image::resolve(&auto),
        Ok(Image::Disk {
            url,
            format: None,
            checksum
        })
    );
    assert_eq!(Image::resolve(&ISO), Ok(Image::LiveIso { url: Location(ISO.url) }));
    assert_eq!(
        Image::resolve(&OCI),
        Ok(Image::Oci {
            url: Location(OCI.url),
            format: None
        })
    );
}

#[test]
fn resolving_reports_every_error() {
    let fields = ImageFields {
        url: "i/a",
        checksum: None,
        checksum_type: Some("x"),
        disk_format: Some("zip"),
    };
    let errors = Image::resolve(&fields).unwrap_err();
    let fields: Vec<_> = errors.iter().map(ImageError::field).collect();
    assert_eq!(
        fields,
        [
            ImageField::Url,
            ImageField::Checksum,
            ImageField::ChecksumType,
            ImageField::DiskFormat
        ]
    );
}

#[test]
fn no_message_repeats_credentials_of_a_url() {
    let url = "file://admin:s3cret@images.example/os";
    let fields = ImageFields {
        url,
        checksum: Some("http://u:s3cret@ho st/x"),
        ..DISK
    };
    let shown: String = check_host_image(&fields)
        .iter()
        .map(|error| format!("{error} {error:?}"))
        .collect();
    assert!(
        !shown.contains("s3cret") && !format!("{fields:?}").contains("s3cret"),
        "{shown}"
    );
}

#[test]
fn no_image_prints_credentials_of_its_url() {
    let url = "https://admin:s3cret@images.example/os?signature=s3cret";
    let image = Image::resolve(&ImageFields {
        url,
        checksum: Some(url),
        ..DISK
    })
    .unwrap();
    let shown = format!("{image:?}");
    assert!(
        shown.contains("images.example/os") && !shown.contains("s3cret"),
        "{shown}"
    );
    let Image::Disk { url: location, .. } = image else {
        panic!("a disk image: {shown}")
    };
    assert_eq!(location.as_str(), url);
}

#[test]
fn login_belongs_to_the_registry_of_the_image_and_the_closest_one_is_used() {
    let of = |url| ImageFields { url, ..OCI }.registry_image();
    let in_registry = |url| of(url).unwrap_or_else(|| panic!("{url}"));
    assert_eq!(of("http://registry.example/os"), None);
    let iso = ImageFields {
        disk_format: Some("live-iso"),
        ..OCI
    };
    assert_eq!(iso.registry_image(), None);
    for (url, key, closeness) in [
        ("oci://registry.example/os:v1", "registry.example", Some(0)),
        ("OCI://Registry.example/os", "registry.EXAMPLE", Some(0)),
        ("oci://registry.example/os", "https://registry.example/v1/", Some(0)),
        ("oci://registry.example/os", "http://registry.example/", Some(0)),
        ("oci://registry.example:5000/os", "registry.example:5000", Some(0)),
        ("oci://registry.example:5000/os", "registry.example", None),
        ("oci://registry.example/os", "registry.example:5000", None),
        ("oci://registry.example/os", "registry.example.org", None),
        (
            "oci://registry.example/team/os@sha256:00",
            "registry.example/team",
            Some(4),
        ),
        ("oci://registry.example/team/os:v1", "registry.example/team/os", Some(7)),
        ("oci://registry.example/team/os", "registry.example/tea", None),
        ("oci://registry.example/os", "registry.example/team", None),
        ("oci://docker.io/team/os", "https://index.docker.io/v1/", Some(0)),
        ("oci://registry-1.docker.io/team/os", "docker.io", Some(0)),
        ("oci://registry.example", "registry.example", Some(0)),
        ("oci://registry.example/os", "", None),
    ] {
        assert_eq!(in_registry(url).closeness(key), closeness, "{url} {key}");
    }
    assert_eq!(
        in_registry("oci://registry.example:5000/os").registry(),
        "registry.example:5000"
    );
}

/// Ironic takes what is before the first '@' of the whole URL for the registry: it would log in there.
#[test]
fn image_of_a_registry_with_user_info_is_rejected_and_names_no_registry() {
    for url in [
        "oci://evil.example@registry.example/os@sha256:00",
        "OCI://user:pw@registry.example/os",
        "oci://@registry.example/os",
    ] {
        for disk_format in [None, Some("live-iso")] {
            let fields = ImageFields {
                url,
                disk_format,
                ..OCI
            };
            assert_eq!(Image::resolve(&fields), Err(vec![ImageError::RegistryUser]), "{url}");
            assert_eq!(fields.registry_image(), None, "{url}");
        }
    }
    assert_eq!(ImageError::RegistryUser.field(), ImageField::Url);
}
