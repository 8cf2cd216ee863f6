//! A provider can be called from the seam only (generations specification 14).
//!
//! The types come first: every call that may cost money takes a permit that only the seam can make. This reads the source
//! as well, so that a way around the types (a public constructor, a method that forgets to ask for the permit) is seen the
//! day it lands. The methods are read from the trait itself, so nobody has to keep a list of them.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use source::{Call, Source};

/// Files that may call a provider, with the methods that each calls, and why.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    (
        "provider-svc/src/seam/calling.rs",
        &["submit", "poll", "fetch", "cancel"],
        "the steps K7 to K10 of a call whose row is open",
    ),
    (
        "provider-svc/src/adapters/openai/mod.rs",
        &["submit", "poll", "fetch", "cancel"],
        "an adapter that hands its films, and the permit that it was given, to its engine of jobs",
    ),
    (
        "provider-svc/src/seam/bills.rs",
        &["reconcile"],
        "the bill of a row that is settled",
    ),
];
/// Files that may make a permit.
const GRANTING: &[&str] = &[
    "provider-svc/src/seam/run.rs",
    "provider-svc/src/seam/bills.rs",
    "provider-svc/src/seam/resume.rs",
];
/// Hosts of providers: whoever names one talks to it.
const HOSTS: &[&str] = &[
    "api.openai.com",
    "queue.fal.run",
    "fal.run",
    "api.fal.ai",
    "api.kie.ai",
    "api.replicate.com",
    "api.meshy.ai",
    "api.together.xyz",
    "api.x.ai",
    "api.elevenlabs.io",
    "generativelanguage.googleapis.com",
];
/// Where hosts of providers may be named.
const TALKING: &[&str] = &["provider-svc/src/adapters/", "provider-svc/src/settings.rs"];

type Methods = BTreeMap<String, usize>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every source file of the workspace that is not a test, by its path from the root.
fn sources() -> BTreeMap<String, Source> {
    let root = root();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path().join("src"))
        .filter(|folder| folder.is_dir())
        .collect();
    let mut sources = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "tests") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && path.file_name().is_some_and(|name| name != "tests.rs")
            {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                if !name.starts_with("tests/") {
                    sources.insert(name, Source::read(&std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
    }
    sources
}

/// The methods of the trait that ask for the permit, with their number of arguments.
fn methods(of_trait: &Source) -> Methods {
    let all = of_trait.methods("Provider");
    assert!(
        all.len() >= 8,
        "only {} methods were found in the trait",
        all.len()
    );
    for method in &all {
        assert!(
            method.permit || !method.asynchronous,
            "{} may talk to a provider and asks for no permit",
            method.name
        );
    }
    all.into_iter()
        .filter(|method| method.permit)
        .map(|method| (method.name, method.arguments))
        .collect()
}

/// Receivers that have methods of the same names and are no providers.
const OTHERS: &[&str] = &["self", "seam", "ledger"];

fn calls(source: &Source, methods: &Methods) -> Vec<Call> {
    // Whoever calls one holds a permit: its type is named in the file, or the value in the call.
    let holds = source.names(|name| name == "SeamPermit");
    source
        .calls()
        .into_iter()
        .filter(|call| match methods.get(&call.name) {
            Some(arguments) if call.by_path => call.arguments == arguments + 1,
            Some(arguments) => {
                let other = call.on.as_deref().is_some_and(|on| OTHERS.contains(&on));
                call.arguments == *arguments && !other && (holds || call.permit)
            }
            None => false,
        })
        .collect()
}

/// What is wrong, each with file, line and method; and which of the allowed calls there are.
fn audit(
    sources: &BTreeMap<String, Source>,
    methods: &Methods,
    allowed: &[(&str, &[&str], &str)],
) -> (Vec<String>, BTreeSet<(String, String)>) {
    let (mut wrong, mut found) = (Vec::new(), BTreeSet::new());
    for (name, source) in sources {
        for call in calls(source, methods) {
            let may = allowed
                .iter()
                .any(|(file, calls, _)| file == name && calls.contains(&call.name.as_str()));
            if may {
                found.insert((name.clone(), call.name));
            } else {
                wrong.push(format!("{name}:{}: calls {} of a provider", call.line, call.name));
            }
        }
        if source.grants() && !GRANTING.contains(&name.as_str()) {
            wrong.push(format!("{name}: makes a permit"));
        }
        let talks = TALKING.iter().any(|talking| name.starts_with(talking));
        for host in HOSTS.iter().filter(|host| !talks && source.says(host)) {
            wrong.push(format!("{name}: names {host}"));
        }
    }
    for (file, calls, _) in allowed {
        for call in *calls {
            if !found.contains(&((*file).to_owned(), (*call).to_owned())) {
                wrong.push(format!("the allowed call of {call} in {file} is stale"));
            }
        }
    }
    (wrong, found)
}

const TRAIT: &str = "provider-svc/src/provider.rs";

#[test]
fn providers_are_called_from_the_seam_only() {
    let sources = sources();
    assert!(sources.len() > 200, "only {} files were read", sources.len());
    let methods = methods(&sources[TRAIT]);
    let (wrong, found) = audit(&sources, &methods, ALLOWED);
    assert!(wrong.is_empty(), "{wrong:#?}");
    let called: BTreeSet<&String> = found.iter().map(|(_, method)| method).collect();
    assert_eq!(called, methods.keys().collect(), "every method has its one place");
}

#[test]
fn g_167_a_method_is_covered_the_day_it_lands() {
    let mut sources = sources();
    let file = root().join(TRAIT);
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replacen(
        "    async fn submit(",
        "    async fn text_to_scent(&self, permit: &SeamPermit, call: &Call) -> Result<Finished, Failure>;\n    async fn submit(",
        1,
    );
    sources.insert(TRAIT.to_owned(), Source::read(&text));
    let bypass = "use x::SeamPermit;\nasync fn smell(provider: &dyn Provider, permit: &SeamPermit) {\n    \
                  provider\n        .text_to_scent(permit, &call(1, 2))\n        .await;\n}\n";
    sources.insert("kernel-svc/src/nodes/smell.rs".to_owned(), Source::read(bypass));
    let (wrong, _) = audit(&sources, &methods(&sources[TRAIT]), ALLOWED);
    assert_eq!(
        wrong,
        ["kernel-svc/src/nodes/smell.rs:4: calls text_to_scent of a provider"]
    );
}

#[test]
fn g_168_an_allowed_call_that_is_not_there_is_stale() {
    let sources = sources();
    let methods = methods(&sources[TRAIT]);
    let mut allowed = ALLOWED.to_vec();
    allowed.push(("provider-svc/src/seam/settle.rs", &["submit"], "nobody knows"));
    let (wrong, _) = audit(&sources, &methods, &allowed);
    assert_eq!(
        wrong,
        ["the allowed call of submit in provider-svc/src/seam/settle.rs is stale"]
    );
}

#[test]
fn g_169_a_planted_bypass_turns_it_red() {
    let sources = sources();
    let methods = methods(&sources[TRAIT]);
    let plain = |text: &str| {
        let planted = BTreeMap::from([("gateway/src/planted.rs".to_owned(), Source::read(text))]);
        audit(&planted, &methods, &[]).0
    };
    for (bypass, expected) in [
        (
            "fn f(permit: P) { p.submit(&permit, &call, &emit) }",
            "calls submit",
        ),
        (
            "fn f(p: SeamPermit) { self.provider.poll(&p, \"a,b)\", e) }",
            "calls poll",
        ),
        ("fn f() { Provider::fetch(&p, q, r) }", "calls fetch"),
        ("fn f() { <Fal as Provider>::cancel(&p, q, r) }", "calls cancel"),
        (
            "fn f(permit: P) { run!(p.reconcile(permit, job)) }",
            "calls reconcile",
        ),
        ("fn f() { SeamPermit::grant() }", "makes a permit"),
        (
            "const U: &str = \"https://queue.fal.run/x\";",
            "names queue.fal.run",
        ),
    ] {
        let wrong = plain(bypass);
        assert!(
            wrong.iter().any(|wrong| wrong.contains(expected)),
            "{bypass}: {wrong:?}"
        );
    }
    for innocent in [
        "// provider.submit(&permit, &call, &emit)\nfn f(permit: P) {}",
        "/* /* */ p.poll(&permit, a, b) */ const T: &str = r#\"p.fetch(&permit, \"x\")\"#;",
        "fn f(permit: P) { token.cancel(); queue.submit(op); seam.cancel(a, b, c) }",
        "fn f<'a>(x: &'a str) { ledger.cancel(caller, id) }",
    ] {
        assert_eq!(plain(innocent), Vec::<String>::new(), "{innocent}");
    }
}

#[test]
fn g_170_a_permit_cannot_be_made_outside_of_the_seam() {
    // That it does not compile is shown by the examples of the type; this holds what they rest on.
    let text = std::fs::read_to_string(root().join("provider-svc/src/seam/permit.rs")).unwrap();
    assert!(
        text.contains("pub struct SeamPermit(());"),
        "its field is private"
    );
    assert!(
        text.contains("pub(in crate::seam) const fn grant()"),
        "only the seam can make it"
    );
    assert_eq!(text.matches("-> Self").count(), 1, "there is one way");
    assert!(!text.contains("derive(Clone") && !text.contains("Default"));
    assert!(text.matches("compile_fail").count() >= 2);
}
