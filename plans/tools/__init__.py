"""What steps can call: registered Python functions with checked arguments.

The built-in tools are registered when the app is ready; those of an installation's own live
in a module `failsoft_tools` of any installed Django app.
"""
