"""What `ampscope run` puts first on PYTHONPATH: does what `import ampscope` as a program's first line would do.

Python imports the first `sitecustomize` it finds, so this one stands before any that the machine or the environment
has. It steps aside for that one before it ends: sys.path, sys.modules and errors are as they would be without it. Only
PYTHONPATH keeps the folder, so that the Python programs started by this one are observed as well.
"""

import os
import sys


def _observe(python_folder: str) -> None:
    """Imports the package from beside this folder; it waits for torch by itself and loads nothing before."""
    sys.path.insert(0, python_folder)
    try:
        import ampscope  # noqa: F401
    except Exception as error:  # whatever it is, the program must start
        sys.stderr.write(f"ampscope: attaching failed ({error!r}); the run goes on without it\n")
    finally:
        sys.path.remove(python_folder)


def _shadowed_spec():
    """The spec of the sitecustomize that would have been imported if this one were not there."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec("sitecustomize", None, None) if find_spec else None
        if spec is not None:
            return spec
    return None


def _step_aside() -> None:
    spec = _shadowed_spec()
    if spec is None:
        # What the import system itself says where there is none; `site` expects exactly this and stays silent.
        raise ModuleNotFoundError("No module named 'sitecustomize'", name="sitecustomize")
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    # The import of this file returns what stands in sys.modules at its end; an error of theirs removes it again.
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _main() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    if os.environ.get("AMPSCOPE_OUTPUT"):
        _observe(os.path.dirname(folder))
    _step_aside()


_main()
