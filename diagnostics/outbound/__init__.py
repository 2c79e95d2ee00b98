"""What leaves the installation: mail, pinned HTTP, addresses, sealed credentials."""
