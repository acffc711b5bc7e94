// Show the page that the address names, and fill in its interactive parts.
import { html, render } from "./vendor/preact-htm.js";
import { Flips } from "./flips.js";
import { Problems } from "./problems.js";
import { parseRoute, replaceQuery } from "./router.js";
import { searchRuns } from "./runs.js";
import { SamplePage } from "./sample.js";
import { openEmbedded, openServer } from "./source.js";
import { Tools, Trail } from "./shell.js";

const source = document.documentElement.dataset.source === "api" ? openServer() : openEmbedded();
const dynamic = document.getElementById("dynamic");
let version = 0; // grows when a server reports changes
let shown = "";

const MOUNTS = {
  problems: (element, route) => html`<${Problems} source=${source} run=${element.dataset.run}
    route=${route} onQuery=${setQuery} version=${version} />`,
  flips: (element, route) => html`<${Flips} source=${source} a=${element.dataset.a}
    b=${element.dataset.b} route=${route} onQuery=${setQuery} version=${version} />`,
};

function setQuery(query) {
  replaceQuery(query);
  update();
}

function fill(section, route) {
  for (const panel of section.querySelectorAll("[data-mount=runs]")) searchRuns(panel, route, setQuery);
  for (const element of section.querySelectorAll("[data-mount]")) {
    const mount = MOUNTS[element.dataset.mount];
    if (mount) render(mount(element, route), element);
  }
}

async function findSection(route) {
  if (route.kind === "run" && route.rest.length) return dynamic;
  const section = await source.section(route.key);
  if (!section) throw new Error("This page does not exist. Start from the overview.");
  return section;
}

async function update() {
  const route = parseRoute(location.hash);
  let section = dynamic;
  try {
    section = await findSection(route);
    if (section === dynamic) {
      render(html`<${SamplePage} source=${source} route=${route} version=${version} />`, dynamic);
    } else {
      fill(section, route);
    }
  } catch (error) {
    render(html`<p class="failure" role="alert">${error.message}</p>`, dynamic);
    section = dynamic;
  }
  present(section, route);
}

function present(section, route) {
  for (const page of document.querySelectorAll("main > .page")) page.hidden = page !== section;
  document.documentElement.classList.add("ready");
  const name = route.rest[0] || section.dataset.title || "";
  document.title = name ? `${name} · assay` : "assay";
  render(html`<${Trail} route=${route} title=${section.dataset.title || ""} />`, document.getElementById("trail"));
  const page = `${route.key}/${route.kind === "compare" ? "" : route.rest.join("/")}`;
  if (page !== shown) {
    if (shown) window.scrollTo(0, 0);
    shown = page;
  }
}

async function showTools() {
  const links = await source.block("links").catch(() => []);
  render(html`<${Tools} links=${links} />`, document.getElementById("tools"));
}

async function start() {
  await showTools();
  window.addEventListener("hashchange", update);
  source.subscribe((keys) => {
    version += 1;
    update();
    if (keys.includes("overview")) showTools();
  });
  await update();
}

start();
