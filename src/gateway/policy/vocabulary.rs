//! What the policy schema says about each action: which facts it wants, of which kind, with which
//! words. It knows no policy, and of facts only their names and kinds.

use std::collections::BTreeMap;

use cedar_policy::{EntityId, EntityTypeName, EntityUid, RestrictedExpression};
use serde::Deserialize;

use crate::domain::facts::{FactValue, Facts};

use super::PolicyFailure;

/// The attribute that holds the level asked about.
pub(super) const APPROVAL_LEVEL: &str = "approval_level";
/// The attribute that holds the configured cooling-off.
const COOLING_OFF_DAYS: &str = "cooling_off_days";
/// The type of a principal that acts under a mandate.
const AGENT: &str = "Agent";
/// The type of a principal that is a human who acts for himself.
const PERSON: &str = "Person";
/// The type of every resource.
const COMPANY: &str = "Company";

/// What one action of the schema wants.
#[derive(Debug)]
pub(super) struct ActionWords {
    action: EntityUid,
    principal: EntityTypeName,
    /// Whether the principal acts under a mandate.
    by_agent: bool,
    company: EntityTypeName,
    attributes: BTreeMap<String, Kind>,
}

/// What an attribute holds.
#[derive(Debug)]
enum Kind {
    Bool,
    Long,
    /// A word of a closed list, ready as Cedar wants it.
    Word {
        list: String,
        words: BTreeMap<String, EntityUid>,
    },
}

impl ActionWords {
    /// Reads every action out of a schema in Cedar's JSON form with resolved types.
    ///
    /// # Errors
    /// A sentence that names the action and attribute which this daemon cannot serve.
    pub(super) fn of_schema(json: serde_json::Value) -> Result<BTreeMap<String, Self>, String> {
        let mut namespaces: BTreeMap<String, Namespace> =
            serde_json::from_value(json).map_err(|error| error.to_string())?;
        let root = namespaces.remove("").unwrap_or_default();
        if let Some(name) = namespaces.keys().next() {
            return Err(format!("namespaces are not used here, and `{name}` is one"));
        }
        let lists = root.lists()?;
        let mut actions = BTreeMap::new();
        for (name, action) in root.actions {
            // An action that applies to nothing is a group of others.
            let Some(applies_to) = action.applies_to else { continue };
            let words = Self::of_action(&name, applies_to, &lists)?;
            actions.insert(name, words);
        }
        Ok(actions)
    }

    fn of_action(name: &str, applies_to: AppliesTo, lists: &Lists) -> Result<Self, String> {
        let by_agent = applies_to.principal_types == [AGENT];
        let fits = by_agent || applies_to.principal_types == [PERSON];
        if !fits || applies_to.resource_types != [COMPANY] {
            return Err(format!(
                "action `{name}` must have {AGENT} or {PERSON} as principal and {COMPANY} as \
                 resource"
            ));
        }
        let declared = match applies_to.context {
            None => BTreeMap::new(),
            Some(context) => context.attributes.ok_or_else(|| {
                format!("action `{name}`: its context must be written out in place")
            })?,
        };
        let mut attributes = BTreeMap::new();
        for (attribute, declared) in declared {
            let kind = declared.kind(lists).map_err(|problem| {
                format!("action `{name}`, attribute `{attribute}`: {problem}")
            })?;
            if [APPROVAL_LEVEL, COOLING_OFF_DAYS].contains(&attribute.as_str())
                && !matches!(kind, Kind::Long)
            {
                return Err(format!("action `{name}`: `{attribute}` must be a Long"));
            }
            attributes.insert(attribute, kind);
        }
        Ok(Self {
            action: uid("Action", name)?,
            principal: type_name(if by_agent { AGENT } else { PERSON })?,
            by_agent,
            company: type_name(COMPANY)?,
            attributes,
        })
    }

    pub(super) fn action(&self) -> EntityUid {
        self.action.clone()
    }

    /// Who asks, if the schema lets his like ask.
    pub(super) fn principal(&self, by_agent: bool, id: &str) -> Result<EntityUid, PolicyFailure> {
        if by_agent != self.by_agent {
            return Err(PolicyFailure::Request);
        }
        Ok(EntityUid::from_type_name_and_id(self.principal.clone(), EntityId::new(id)))
    }

    pub(super) fn company(&self, id: &str) -> EntityUid {
        EntityUid::from_type_name_and_id(self.company.clone(), EntityId::new(id))
    }

    pub(super) fn reads_level(&self) -> bool {
        self.attributes.contains_key(APPROVAL_LEVEL)
    }

    /// The facts as Cedar's context, but for the approval level.
    pub(super) fn context(
        &self,
        facts: &Facts,
        cooling_off_days: i64,
    ) -> Result<Vec<(String, RestrictedExpression)>, PolicyFailure> {
        let (mut pairs, mut missing, mut unfit) = (Vec::new(), Vec::new(), Vec::new());
        for (name, kind) in &self.attributes {
            let value = match name.as_str() {
                APPROVAL_LEVEL => continue,
                COOLING_OFF_DAYS => Some(&FactValue::Long(cooling_off_days)),
                fact => facts.get(fact).map(|fact| &fact.value),
            };
            let Some(value) = value else {
                missing.push(name.clone());
                continue;
            };
            match kind.express(value) {
                Some(expression) => pairs.push((name.clone(), expression)),
                None => unfit.push(name.clone()),
            }
        }
        if !missing.is_empty() {
            return Err(PolicyFailure::MissingFacts(missing));
        }
        if !unfit.is_empty() {
            return Err(PolicyFailure::UnfitFacts(unfit));
        }
        Ok(pairs)
    }

    /// The facts it wants, ascending.
    #[cfg(test)]
    pub(super) fn facts(&self) -> impl Iterator<Item = &str> {
        let given = [APPROVAL_LEVEL, COOLING_OFF_DAYS];
        self.attributes.keys().map(String::as_str).filter(move |name| !given.contains(name))
    }

    /// The list whose words that fact has, where it has some.
    #[cfg(test)]
    pub(super) fn list_of(&self, fact: &str) -> Option<&str> {
        match self.attributes.get(fact) {
            Some(Kind::Word { list, .. }) => Some(list),
            Some(Kind::Bool | Kind::Long) | None => None,
        }
    }
}

impl Kind {
    /// The value as Cedar wants it, if it is of this kind. Days and amounts count something, so a
    /// number below zero is none; a rule such as `amount <= limit` would let it through.
    fn express(&self, value: &FactValue) -> Option<RestrictedExpression> {
        match (self, value) {
            (Self::Bool, FactValue::Bool(value)) => Some(RestrictedExpression::new_bool(*value)),
            (Self::Long, FactValue::Long(value)) => {
                (*value >= 0).then(|| RestrictedExpression::new_long(*value))
            }
            (Self::Word { list, words }, FactValue::Word { list: of, word }) if list == of => {
                words.get(*word).cloned().map(RestrictedExpression::new_entity_uid)
            }
            (Self::Bool | Self::Long | Self::Word { .. }, _) => None,
        }
    }
}

/// The closed lists of a schema: name to words.
type Lists = BTreeMap<String, BTreeMap<String, EntityUid>>;

/// A schema's namespace in Cedar's JSON form, as far as it is read here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Namespace {
    #[serde(default)]
    entity_types: BTreeMap<String, EntityType>,
    #[serde(default)]
    actions: BTreeMap<String, Action>,
}

#[derive(Debug, Deserialize)]
struct EntityType {
    #[serde(rename = "enum", default)]
    words: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Action {
    applies_to: Option<AppliesTo>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppliesTo {
    principal_types: Vec<String>,
    resource_types: Vec<String>,
    /// Left out where it is empty.
    context: Option<ContextRecord>,
}

/// The context; one that is a type of its own, written elsewhere, has no attributes here.
#[derive(Debug, Deserialize)]
struct ContextRecord {
    attributes: Option<BTreeMap<String, Attribute>>,
}

#[derive(Debug, Deserialize)]
struct Attribute {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    #[serde(default = "required_unless_said")]
    required: bool,
}

impl Namespace {
    fn lists(&self) -> Result<Lists, String> {
        let mut lists = Lists::new();
        for (list, declared) in &self.entity_types {
            let mut words = BTreeMap::new();
            for word in &declared.words {
                words.insert(word.clone(), uid(list, word)?);
            }
            if !words.is_empty() {
                lists.insert(list.clone(), words);
            }
        }
        Ok(lists)
    }
}

impl Attribute {
    fn kind(&self, lists: &Lists) -> Result<Kind, String> {
        if !self.required {
            return Err("it must be required; an absent fact is a denial, never `false`".to_owned());
        }
        let name = self.name.as_deref().unwrap_or(&self.kind);
        match name.rsplit("::").next().unwrap_or(name) {
            "Bool" | "Boolean" => Ok(Kind::Bool),
            "Long" => Ok(Kind::Long),
            list => lists
                .get(list)
                .map(|words| Kind::Word { list: list.to_owned(), words: words.clone() })
                .ok_or_else(|| format!("facts are Bool, Long or an enum entity, not `{list}`")),
        }
    }
}

fn required_unless_said() -> bool {
    true
}

fn type_name(name: &str) -> Result<EntityTypeName, String> {
    name.parse().map_err(|error: cedar_policy::ParseErrors| error.to_string())
}

fn uid(kind: &str, id: &str) -> Result<EntityUid, String> {
    Ok(EntityUid::from_type_name_and_id(type_name(kind)?, EntityId::new(id)))
}
