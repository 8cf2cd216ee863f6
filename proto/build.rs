//! Compiles the contracts with protox, so that nobody needs protoc, and emits the descriptor set for reflection.

use std::{env, error::Error, fs, path::PathBuf};

const FILES: &[&str] = &[
    "atelier/common/v1/value.proto",
    "atelier/asset/v1/asset.proto",
    "atelier/asset/v1/asset_service.proto",
    "atelier/tracker/v1/budget_service.proto",
    "atelier/tracker/v1/generation.proto",
    "atelier/tracker/v1/generation_service.proto",
    "atelier/provider/v1/provider_service.proto",
    "atelier/kernel/v1/event.proto",
    "atelier/kernel/v1/job_service.proto",
    "atelier/kernel/v1/node_service.proto",
    "atelier/kernel/v1/workflow_service.proto",
    "atelier/kernel/v1/worker_service.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=atelier");
    let descriptors = protox::compile(FILES, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    tonic_prost_build::configure()
        // Transports come from `common`; the `connect` that tonic would add clashes with a method of that name.
        .build_transport(false)
        .bytes(".")
        .skip_protoc_run()
        .compile_fds(descriptors.clone())?;
    fs::write(
        out.join("atelier.bin"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    Ok(())
}
