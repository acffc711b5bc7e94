// Keep pages up to date with a server, without disturbing a reader.

const progress = new Map(); // of runs that go on, by the key of their page

function showProgress() {
  for (const element of document.querySelectorAll("[data-progress]")) {
    const [judged, total] = progress.get(element.dataset.progress) || [];
    if (judged === undefined) continue;
    const counts = [judged, total].filter((count) => count !== null).map((count) => count.toLocaleString("en"));
    element.textContent = `${counts.join(" of ")} judged`;
  }
}

function makeSection(key, content) {
  const element = document.createElement("section");
  element.className = "page";
  element.id = key;
  element.dataset.title = content.title;
  element.innerHTML = content.html; // written and escaped by the server
  return element;
}

function isSameMount(one, other) {
  const [a, b] = [one.dataset, other.dataset];
  return a.mount === b.mount && a.run === b.run && a.a === b.a && a.b === b.b;
}

// Replace the content of a page around its tables. They stay where they are, since an element that
// is moved forgets how far it was scrolled.
function replaceContent(present, fresh) {
  const kept = [...present.children].filter((child) => child.classList.contains("mount"));
  const open = [...present.querySelectorAll("details[open] > summary")].map((one) => one.textContent);
  const typing = document.activeElement.matches("[data-search]") && present.contains(document.activeElement);
  let cursor = present.firstChild;
  const removeUntil = (end) => {
    while (cursor !== end) {
      const next = cursor.nextSibling;
      cursor.remove();
      cursor = next;
    }
  };
  for (const node of [...fresh.childNodes]) {
    const same = node.dataset && kept.find((one) => isSameMount(one, node));
    if (same) {
      removeUntil(same);
      cursor = same.nextSibling;
    } else {
      present.insertBefore(node, cursor);
    }
  }
  removeUntil(null);
  for (const summary of present.querySelectorAll("details > summary")) {
    if (open.includes(summary.textContent)) summary.parentElement.open = true;
  }
  if (typing) present.dataset.typing = "yes";
  present.dataset.title = fresh.dataset.title;
  delete present.dataset.stale;
}

// Put a page into the document: instead of an earlier state of it, or before an element.
export function placeSection(key, content, before) {
  const fresh = makeSection(key, content);
  const present = document.getElementById(key);
  if (present) replaceContent(present, fresh);
  else before.before(fresh);
  showProgress();
  return present || fresh;
}

// Listen to the server while the page is in sight: a browser has few connections for all its pages.
// `missed` is called when something may have changed in the meantime.
export function listen(changed, missed) {
  const note = document.querySelector("footer.bottom");
  let events = null;
  let before = false;
  const open = () => {
    events = new EventSource("api/events");
    events.addEventListener("changed", (event) => changed(JSON.parse(event.data)));
    events.addEventListener("progress", (event) => {
      for (const [key, counts] of Object.entries(JSON.parse(event.data))) progress.set(key, counts);
      showProgress();
    });
    events.onopen = () => {
      note.textContent = "Served by assay, up to date while runs go on.";
      if (before) missed();
      before = true;
    };
    events.onerror = () => {
      note.textContent = "The server does not answer. This page shows what it sent last.";
    };
  };
  const follow = () => {
    if (document.hidden && events) {
      events.close();
      events = null;
    } else if (!document.hidden && !events) {
      open();
    }
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
