//! Fields of the metadata of objects, and of the options of a delete.

use super::form::Form::{Int, Json, Keyed, Many, Map, One, SetFlag, SetInt, SetText, Text, Time, Union};
use super::form::{Field, Message, messages};

messages! {
    OBJECT_META {
        1 name Text, 2 generateName Text, 3 namespace Text, 4 selfLink Text, 5 uid Text, 6 resourceVersion Text,
        7 generation Int, 8 creationTimestamp Time, 9 deletionTimestamp Time, 10 deletionGracePeriodSeconds SetInt,
        11 labels Map(&Text), 12 annotations Map(&Text), 13 ownerReferences Keyed("uid", &OWNER_REFERENCE),
        14 finalizers Union(&Text), 17 managedFields Many(&One(&MANAGED_FIELDS_ENTRY)),
    }
    OWNER_REFERENCE {
        1 kind SetText, 3 name SetText, 4 uid SetText, 5 apiVersion SetText, 6 controller SetFlag,
        7 blockOwnerDeletion SetFlag,
    }
    MANAGED_FIELDS_ENTRY {
        1 manager Text, 2 operation Text, 3 apiVersion Text, 4 time Time, 6 fieldsType Text, 7 fieldsV1 Json,
        8 subresource Text,
    }
    LABEL_SELECTOR { 1 matchLabels Map(&Text), 2 matchExpressions Many(&One(&LABEL_SELECTOR_REQUIREMENT)) }
    LABEL_SELECTOR_REQUIREMENT { 1 key SetText, 2 operator SetText, 3 values Many(&Text) }
    CONDITION {
        1 type SetText, 2 status SetText, 3 observedGeneration Int, 4 lastTransitionTime Time, 5 reason SetText,
        6 message SetText,
    }
    PRECONDITIONS { 1 uid SetText, 2 resourceVersion SetText }
    DELETE_OPTIONS {
        1 gracePeriodSeconds SetInt, 2 preconditions One(&PRECONDITIONS), 3 orphanDependents SetFlag,
        4 propagationPolicy SetText, 5 dryRun Many(&Text), 6 ignoreStoreReadErrorWithClusterBreakingPotential SetFlag,
    }
    TYPE_META { 1 apiVersion Text, 2 kind Text }
}
