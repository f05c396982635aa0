//! The roles of the accounts of the Go managers, and what this program needs in their place.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject};
use kube::{Api, Client};
use metal3_flags::Owner;
use metal3_grants::Scope;
use metal3_preflight::{Account, Manager, Right};
use metal3_runtime::access::Permission;

use super::brief;

/// What one account has: in all namespaces, and in its own.
#[derive(Default)]
struct Rules {
    everywhere: Vec<PolicyRule>,
    local: Vec<PolicyRule>,
}

/// The accounts of the Go managers.
pub(super) async fn accounts(client: &Client, deployments: &[Deployment], managers: &[Manager]) -> Vec<Account> {
    let mut accounts = Vec::new();
    for manager in managers.iter().filter(|manager| !manager.is_this_program) {
        let namespace = manager.deployment.split('/').next().unwrap_or_default();
        let spec = manager.find(deployments).and_then(|one| one.spec.as_ref());
        let pod = spec.and_then(|spec| spec.template.spec.as_ref());
        let account = pod.and_then(|pod| pod.service_account_name.clone());
        let account = account.unwrap_or_else(|| "default".to_owned());
        let (rules, not_read) = match rules(client, (namespace, &account)).await {
            Ok(rules) => (rules, None),
            Err(error) => (Rules::default(), Some(brief(&error.to_string()))),
        };
        accounts.push(Account {
            deployment: manager.deployment.clone(),
            name: format!("{namespace}/{account}"),
            rules: rules.everywhere,
            local_rules: rules.local,
            not_read,
            needed: needed(manager),
        });
    }
    accounts
}

/// The rules of all roles of an account. A role that does not exist gives nothing.
async fn rules(client: &Client, (namespace, account): (&str, &str)) -> kube::Result<Rules> {
    let of_namespace = format!("system:serviceaccounts:{namespace}");
    let groups = ["system:serviceaccounts", "system:authenticated", &of_namespace];
    let is_bound = |subjects: Option<Vec<Subject>>| {
        let mut subjects = subjects.into_iter().flatten();
        subjects.any(|one| {
            let of = (one.kind.as_str(), one.namespace.as_deref(), one.name.as_str());
            of == ("ServiceAccount", Some(namespace), account)
                || one.kind == "Group" && groups.contains(&one.name.as_str())
        })
    };
    let mut rules = Rules::default();
    let bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    for binding in bindings.list(&kube::api::ListParams::default()).await? {
        if is_bound(binding.subjects) {
            rules
                .everywhere
                .extend(of_role(client, namespace, &binding.role_ref).await?);
        }
    }
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), namespace);
    for binding in bindings.list(&kube::api::ListParams::default()).await? {
        if is_bound(binding.subjects) {
            rules.local.extend(of_role(client, namespace, &binding.role_ref).await?);
        }
    }
    Ok(rules)
}

async fn of_role(client: &Client, namespace: &str, role: &RoleRef) -> kube::Result<Vec<PolicyRule>> {
    let rules = if role.kind == "ClusterRole" {
        let found = Api::<ClusterRole>::all(client.clone()).get_opt(&role.name).await?;
        found.and_then(|role| role.rules)
    } else {
        let roles: Api<Role> = Api::namespaced(client.clone(), namespace);
        roles.get_opt(&role.name).await?.and_then(|role| role.rules)
    };
    Ok(rules.unwrap_or_default())
}

/// What the products in the place of a Go manager need.
fn needed(manager: &Manager) -> Vec<Right> {
    let owners = Owner::ALL
        .into_iter()
        .filter(|owner| manager.controllers.contains(&owner.name()));
    let scopes = owners.flat_map(|owner| match owner {
        Owner::Capm3 => metal3_grants::capm3(),
        Owner::Ipam => metal3_grants::ipam(),
        Owner::Hosts => metal3_grants::hosts(),
    });
    let serves_claims = manager.serves_claims();
    let of_claims = metal3_grants::claims().into_iter().filter(|_| serves_claims);
    let scopes = scopes.chain(of_claims);
    let mut needed = Vec::new();
    for (scope, permissions) in scopes {
        let (names, is_local) = match scope {
            Scope::Cluster => (Vec::new(), false),
            Scope::Named(names) => (names, false),
            Scope::Namespace => (Vec::new(), true),
            Scope::NamespaceNamed(names) => (names, true),
        };
        let right = |permission: Permission| Right {
            resource: permission.path(),
            group: permission.group,
            verb: permission.verb.to_owned(),
            names: names.clone(),
            is_local,
        };
        needed.extend(permissions.into_iter().map(right));
    }
    needed
}
