"""PostgreSQL by a pool whose connections are looked at, not asked, when they are taken."""
