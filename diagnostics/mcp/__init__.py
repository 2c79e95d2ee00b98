"""The door for assistants: tools that read, by the Model Context Protocol."""
