"""An app of an installation's own, with tools that leave traces in files."""
