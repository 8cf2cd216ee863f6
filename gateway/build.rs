//! Builds again when the built console changes, also when files come or go.

fn main() {
    println!("cargo:rerun-if-changed=web/console/dist");
}
