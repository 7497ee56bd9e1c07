//! The versions of the peers, from the lock file.

fn main() {
    println!("cargo:rerun-if-changed=Cargo.lock");
    let locked = std::fs::read_to_string("Cargo.lock").expect("Cargo.lock is there");
    for peer in ["distkit", "redis", "rslock", "sqlx"] {
        let after = format!("name = \"{peer}\"\nversion = \"");
        let rest = locked
            .split(after.as_str())
            .nth(1)
            .expect("each peer is locked");
        let version = rest.split('"').next().unwrap_or("?");
        println!("cargo:rustc-env=VERSION_{}={version}", peer.to_uppercase());
    }
}
