use std::error::Error;

use super::*;

const SCHEMA_TEXT: &str = include_str!("../../../../policies/schema.cedarschema");

const PERMIT: &str = r#"
@id("permitted")
@reason("Nothing holds it back.")
permit (principal, action == Action::"invoice.pay", resource);
"#;

fn file(name: &str, text: &str) -> SourceFile {
    SourceFile { name: name.to_owned(), bytes: text.as_bytes().to_vec() }
}

fn schema() -> SourceFile {
    file("schema.cedarschema", SCHEMA_TEXT)
}

/// Loads the permit, a second file with this text, and the schema.
#[track_caller]
fn refused(text: &str) -> String {
    let files = vec![file("a.cedar", PERMIT), file("b.cedar", text), schema()];
    Policies::from_files("here", files).unwrap_err().to_string()
}

#[track_caller]
fn schema_refused(text: &str) -> String {
    let files = vec![file("a.cedar", PERMIT), file("s.cedarschema", text)];
    Policies::from_files("here", files).unwrap_err().to_string()
}

/// A rule with this body.
fn rule(body: &str) -> String {
    format!(
        "@id(\"rule\")\n@reason(\"A rule.\")\nforbid (principal, action == \
         Action::\"invoice.pay\", resource) {body};"
    )
}

#[track_caller]
fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn a_sound_set_loads_under_its_own_ids() {
    let files = vec![file("b.cedar", &rule("when { context.is_partial }")), schema()];
    let with_permit = [files, vec![file("a.cedar", PERMIT)]].concat();
    let policies = Policies::from_files("here", with_permit).unwrap();
    assert_eq!(policies.ids().collect::<Vec<_>>(), ["permitted", "rule"]);
    assert_eq!(policies.reason_text("rule"), Some("A rule."));
    assert_eq!(policies.reason_text("policy0"), None);
}

#[test]
fn a_misspelt_word_is_refused() {
    let text = refused(&rule("when { context.vop == Vop::\"nomatch\" }"));
    holds(&text, &["`rule`", "`b.cedar`", "nomatch"]);
    // A word as plain text would compare as unequal for ever.
    let text = refused(&rule("when { context.vop == \"no_match\" }"));
    holds(&text, &["`rule`", "`b.cedar`"]);
    // So would a word of another list.
    let text = refused(&rule("when { context.vop == Sanctions::\"no\" }"));
    holds(&text, &["`rule`", "`b.cedar`"]);
}

#[test]
fn an_unknown_attribute_action_or_type_is_refused() {
    let text = refused(&rule("when { context.is_own_acount }"));
    assert_eq!(
        text,
        "the policies do not fit the schema: policy `rule` in `b.cedar`, line 3: attribute \
         `is_own_acount` in context for Action::\"invoice.pay\" not found"
    );
    let text = refused(
        "@id(\"rule\")\n@reason(\"A rule.\")\n\
         forbid (principal, action == Action::\"invoice.payy\", resource);",
    );
    holds(&text, &["`rule`", "`b.cedar`", "invoice.payy"]);
    let text = refused(&rule("when { principal == User::\"marie\" }"));
    holds(&text, &["`rule`", "`b.cedar`", "User"]);
    let text = refused(&rule("when { context.amount_e2 > \"500000\" }"));
    holds(&text, &["`rule`", "`b.cedar`"]);
}

#[test]
fn a_warning_is_as_good_as_an_error() {
    let text = refused(&rule("when { context.is_partial && !context.is_partial && false }"));
    holds(&text, &["`rule`", "`b.cedar`"]);
}

#[test]
fn every_policy_has_a_name_and_a_reason_of_its_own() {
    let bare = "forbid (principal, action, resource);";
    let text = refused(&format!("{PERMIT}\n{bare}").replace("\"permitted\"", "\"other\""));
    assert_eq!(text, "policy number 2 in `b.cedar` has no @id");
    let text = refused(&format!("@id(\"\")\n@reason(\"x\")\n{bare}"));
    assert_eq!(text, "policy number 1 in `b.cedar` has no @id");
    let text = refused(&format!("@id(\"bare\")\n{bare}"));
    assert_eq!(text, "policy `bare` in `b.cedar` has no @reason");
    let text = refused(&format!("@id(\"bare\")\n@reason(\"  \")\n{bare}"));
    assert_eq!(text, "policy `bare` in `b.cedar` has no @reason");
    assert_eq!(
        refused(PERMIT),
        "policy `permitted` in `b.cedar` has the same @id as one in `a.cedar`"
    );
    let text = refused(&format!("{0}{0}", PERMIT.replace("\"permitted\"", "\"twice\"")));
    assert_eq!(text, "policy `twice` in `b.cedar` has the same @id as one in `b.cedar`");
}

#[test]
fn an_id_is_in_kebab_case_and_not_taken() {
    for id in ["Bare", "bare_rule", "bare--rule", "-bare", "bare-", "bare rule", "floor_x", "é"] {
        let text = refused(&format!(
            "@id(\"{id}\")\n@reason(\"x\")\nforbid (principal, action, resource);"
        ));
        holds(&text, &[&format!("policy `{id}` in `b.cedar`"), "lower-case"]);
    }
    let text = refused("@id(\"no-permit\")\n@reason(\"x\")\nforbid (principal, action, resource);");
    holds(&text, &["policy `no-permit` in `b.cedar`", "no policy permits"]);
}

#[test]
fn a_slip_in_the_syntax_is_shown_with_its_line() {
    let text =
        refused("// fine\n\n@id(\"x\")\n@reason(\"x\")\nforbid (principle, action, resource);");
    holds(&text, &["`b.cedar`, line 5"]);
    let text = schema_refused("entity Agent;\nentity Company\nentity Vop;");
    holds(&text, &["`s.cedarschema`, line 3"]);
    let files = vec![SourceFile { name: "b.cedar".to_owned(), bytes: vec![0xff] }, schema()];
    let text = Policies::from_files("here", files).unwrap_err().to_string();
    assert_eq!(text, "`b.cedar` is not UTF-8 text");
}

#[test]
fn a_template_would_never_apply_and_is_refused() {
    let text =
        refused("@id(\"x\")\n@reason(\"x\")\nforbid (principal == ?principal, action, resource);");
    holds(&text, &["`b.cedar`", "template"]);
}

#[test]
fn a_schema_asks_only_what_the_daemon_can_answer() {
    let with = |attribute: &str| {
        format!(
            "entity Agent; entity Company;\naction \"invoice.pay\" appliesTo {{ principal: \
             [Agent], resource: [Company], context: {{ {attribute} }} }};"
        )
    };
    let sound = vec![file("a.cedar", PERMIT), file("s.cedarschema", &with("is_partial: Bool"))];
    assert!(Policies::from_files("here", sound).is_ok());
    holds(&schema_refused(&with("is_partial?: Bool")), &["`is_partial`", "required"]);
    holds(&schema_refused(&with("vop: String")), &["`vop`", "not `String`"]);
    holds(&schema_refused(&with("vendor: Company")), &["`vendor`", "not `Company`"]);
    holds(&schema_refused(&with("days: Set<Long>")), &["`days`", "not `Set`"]);
    holds(&schema_refused(&with("approval_level: Bool")), &["`approval_level`", "Long"]);
    holds(&schema_refused(&with("cooling_off_days: Bool")), &["`cooling_off_days`", "Long"]);
    let text = schema_refused(&with("").replace("[Agent]", "[Agent, Company]"));
    holds(&text, &["`s.cedarschema`", "`invoice.pay`", "Agent"]);
    let text = schema_refused(&format!("type C = {{}}; {}", with("").replace("{  }", "C")));
    holds(&text, &["`invoice.pay`", "in place"]);
    let text = schema_refused(&format!("namespace Ap {{ {} }}", with("")));
    holds(&text, &["namespace", "`Ap`"]);
}

#[test]
fn a_directory_has_one_schema_and_some_policies() {
    let load = |files| Policies::from_files("here", files).unwrap_err().to_string();
    let text = load(vec![file("a.cedar", PERMIT)]);
    assert_eq!(text, "the policies need one `*.cedarschema` file, and there are 0 in `here`");
    let text = load(vec![file("a.cedar", PERMIT), schema(), file("t.cedarschema", "")]);
    assert_eq!(text, "the policies need one `*.cedarschema` file, and there are 2 in `here`");
    assert_eq!(load(vec![schema()]), "there is no policy in `here`");
    assert_eq!(load(vec![schema(), file("a.cedar", "// x")]), "there is no policy in `here`");
}

#[test]
fn a_directory_that_is_not_there_is_named() {
    let place = tempfile::tempdir().unwrap();
    let error = Policies::load(&place.path().join("nowhere")).unwrap_err();
    holds(&error.to_string(), &["cannot read", "nowhere"]);
    assert!(error.source().is_some());
}

#[test]
fn other_files_and_the_cases_are_left_alone() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("a.cedar"), PERMIT).unwrap();
    std::fs::write(place.path().join("s.cedarschema"), SCHEMA_TEXT).unwrap();
    let digest = Policies::load(place.path()).unwrap().digest().to_owned();
    std::fs::write(place.path().join("README.md"), "not a policy").unwrap();
    std::fs::create_dir(place.path().join("cases")).unwrap();
    std::fs::write(place.path().join("cases").join("x.cedar"), "not read").unwrap();
    assert_eq!(Policies::load(place.path()).unwrap().digest(), digest);
}

#[test]
fn the_digest_moves_with_every_name_and_byte() {
    let digest = |name: &str, text: &str| {
        Policies::from_files("here", vec![schema(), file(name, text)]).unwrap().digest
    };
    let first = digest("a.cedar", PERMIT);
    assert_eq!(first.len(), "sha256:".len() + 64);
    assert!(first.starts_with("sha256:"));
    assert_eq!(digest("a.cedar", PERMIT), first);
    assert_ne!(digest("b.cedar", PERMIT), first);
    assert_ne!(digest("a.cedar", &format!("{PERMIT} ")), first);
    // The same bytes, cut into files at another place.
    let whole = digest_of(&[file("a", "bc")]);
    assert_ne!(digest_of(&[file("ab", "c")]), whole);
    assert_ne!(digest_of(&[file("a", "b"), file("c", "")]), whole);
}
