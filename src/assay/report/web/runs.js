// Search in the list of runs. The table is the server's; rows that do not match are hidden.

function addField(panel, onQuery) {
  const label = document.createElement("label");
  label.className = "search run-search";
  const name = document.createElement("span");
  name.className = "hidden";
  name.textContent = "Search runs";
  const field = document.createElement("input");
  field.type = "search";
  field.dataset.search = "runs";
  field.placeholder = "Search runs  ( / )";
  field.addEventListener("input", () => onQuery({ q: field.value }));
  const count = document.createElement("span");
  count.className = "soft";
  count.setAttribute("role", "status");
  label.append(name, field);
  panel.querySelector("h2").after(label, count);
  return field;
}

// A list that is replaced while someone types gets the focus again.
function keepTyping(page, field) {
  if (!page.dataset.typing) return;
  delete page.dataset.typing;
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

export function searchRuns(panel, route, onQuery) {
  const rows = [...panel.querySelectorAll("table.runs tbody tr")];
  if (!rows.length) return;
  const isNew = !panel.querySelector("input");
  const field = isNew ? addField(panel, onQuery) : panel.querySelector("input");
  const text = route.query.q || "";
  if (field.value !== text) field.value = text;
  if (isNew) keepTyping(panel.closest(".page"), field);
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    const content = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => content.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  const total = rows.length.toLocaleString("en");
  panel.querySelector("[role=status]").textContent = words.length
    ? `${shown.toLocaleString("en")} of ${total} runs` : "";
}
