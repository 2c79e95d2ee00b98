"""Tools that steps can call: registered Python functions with checked arguments.

The built-in tools are registered when the app is ready; an installation adds tools in a
module `failsoft_tools` of any installed Django app.
"""
