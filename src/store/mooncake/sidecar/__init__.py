"""The process that runs Mooncake's Python client for mooncake-kv."""
