"""The script and style sheet of pages: vendored files, the bundle, and no way out of a page."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay.report.pages.document import (
    EARLY,
    bundle_script,
    digest,
    read_style,
    render_document,
    security_policy,
)

WEB = Path(__file__).parents[2] / "src" / "assay" / "report" / "web"
VENDOR = WEB / "vendor"
ROW = re.compile(r"^\| (\S+) \| .* \| ([0-9a-f]{64}) \|$", re.MULTILINE)
MOST_BYTES = 150_000  # of a report without its data and plots
OURS = sorted(WEB.glob("*.js"))


def test_vendored_files_are_what_the_list_says() -> None:
    listed = dict(ROW.findall((VENDOR / "VENDORED.md").read_text()))
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.iterdir()
        if path.name != "VENDORED.md"
    }
    assert listed == found


def test_a_report_without_data_is_small() -> None:
    assert len(render_document([], [], {}, title="empty").encode()) < MOST_BYTES * 0.87


def test_script_and_style_cannot_end_their_elements() -> None:
    for text in (bundle_script(), read_style(), EARLY):
        assert "</script" not in text.lower()
        assert "</style" not in text.lower()
        assert "<!--" not in text


def test_bundle_has_every_module_once_and_no_import_is_left() -> None:
    script = bundle_script()
    for path in OURS:
        assert script.count(f'$modules["{path.name}"] = ') == 1
    assert re.search(r"^(import|export)\b", script, re.MULTILINE) is None


def test_modules_are_in_the_order_of_their_imports() -> None:
    script = bundle_script()
    for name in re.findall(r'= \$modules\["([^"]+)"\];', script):
        assert script.index(f'$modules["{name}"] = ') < script.index(f'= $modules["{name}"];')


def test_every_imported_name_is_exported() -> None:
    for path in OURS:
        for names, module in re.findall(
            r'^import \{ (.*) \} from "\./(.*)";', path.read_text(), re.M
        ):
            if module.startswith("vendor/"):
                continue
            exported = (WEB / module).read_text()
            for name in names.split(", "):
                assert re.search(rf"^export .*\b{name}\b", exported, re.M), (path.name, name)


def test_bundle_is_a_valid_module(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    path = tmp_path / "bundle.mjs"
    path.write_text(bundle_script())
    checked = subprocess.run([node, "--check", path], capture_output=True, text=True, check=False)
    assert checked.stderr == ""


def test_our_modules_never_write_markup_of_samples() -> None:
    """Only the section that a server has escaped is set as markup."""
    for path in OURS:
        lines = [line for line in path.read_text().splitlines() if "innerHTML" in line]
        assert len(lines) == (1 if path.name == "live.js" else 0), path.name
        for word in ("eval(", "new Function", "document.write", "insertAdjacentHTML"):
            assert word not in path.read_text()


def test_policy_allows_only_our_script_and_style() -> None:
    policy = security_policy(api=False)
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert f"script-src {digest(EARLY)} {digest(bundle_script())};" in policy
    assert f"style-src {digest(read_style())};" in policy
    assert "connect-src 'self'" in security_policy(api=True)


def relative_luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((relative_luminance(one), relative_luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def colours(theme: str) -> dict[str, str]:
    """Return the colours of a theme; the dark one is the last declaration of each."""
    found = re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", read_style())
    light: dict[str, str] = {}
    for name, value in found:
        light.setdefault(name, value)
    return light if theme == "light" else dict(found)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_enough_contrast(theme: str) -> None:
    found = colours(theme)
    for ground in ("paper", "page", "well"):
        for ink in ("ink", "muted", "accent", "good", "bad", "invalid", "equal"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
    for name in ("good", "bad", "invalid", "equal", "accent"):
        assert contrast(found[name], found[f"{name}-soft"]) >= 4.5, name
    for ink in ("keyword", "string", "comment", "literal", "name"):
        for ground in ("paper", "good-soft", "bad-soft"):
            assert contrast(found[ink], found[ground]) >= 4.5, (ink, ground)
