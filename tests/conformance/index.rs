//! `tests/cases/index.toml` says the truth.

use std::collections::BTreeMap;

use atelier_tests::cases::{Status, index, specified, tested, write_index};

#[test]
fn every_case_is_in_the_index_and_says_whether_it_is_covered() -> anyhow::Result<()> {
    let tested = tested()?;
    assert!(
        tested.len() > 100,
        "only {} cases were found in test names",
        tested.len()
    );
    let specified = specified()?;
    if std::env::var_os("UPDATE_INDEX").is_some()
        && let Some(ids) = &specified
    {
        let status = |id: &String| {
            if tested.contains(id) {
                Status::Covered
            } else {
                Status::Later
            }
        };
        write_index(&ids.iter().map(|id| (id.clone(), status(id))).collect())?;
    }
    let index: BTreeMap<String, Status> = index()?;
    if let Some(ids) = &specified {
        let missing: Vec<_> = ids.iter().filter(|id| !index.contains_key(*id)).collect();
        let unknown: Vec<_> = index.keys().filter(|id| !ids.contains(*id)).collect();
        assert!(missing.is_empty(), "not in the index: {missing:?}");
        assert!(
            unknown.is_empty(),
            "in the index, in no specification: {unknown:?}"
        );
    } else {
        println!("the specifications are not beside the project: only the tests were compared");
    }
    let wrong: Vec<_> = index
        .iter()
        .filter(|(id, status)| (**status == Status::Covered) != tested.contains(*id))
        .collect();
    assert!(
        wrong.is_empty(),
        "the index and the names of tests disagree: {wrong:?}"
    );
    let strange: Vec<_> = tested.iter().filter(|id| !index.contains_key(*id)).collect();
    assert!(
        strange.is_empty(),
        "tests name cases that do not exist: {strange:?}"
    );
    Ok(())
}
