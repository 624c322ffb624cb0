// Completion for a text area: tables, columns and words of SQL. Arrows choose, Enter or Tab take, Escape closes.
const WORDS = ("SELECT FROM WHERE GROUP BY ORDER BY HAVING LIMIT JOIN ON USING AND OR NOT IN BETWEEN LIKE IS NULL AS CASE WHEN "
  + "THEN ELSE END DISTINCT COUNT(*) COUNT(DISTINCT SUM( AVG( MEDIAN( MIN( MAX( STDDEV( VARIANCE( QUANTILE_CONT( "
  + "DATE_TRUNC( EXTRACT( CAST( COALESCE( ROUND( FLOOR( ROLLUP WITH FILTER").split(" ");
const MOST = 8;

// Insert a text where the cursor is, so that it can be undone.
export function insertText(area, text, start = area.selectionStart, end = area.selectionEnd) {
  area.focus();
  const before = area.value.slice(0, start);
  const space = /[\w"]$/.test(before) && start === area.selectionStart ? " " : "";
  area.setSelectionRange(start, end);
  if (!document.execCommand("insertText", false, space + text)) area.setRangeText(space + text, start, end, "end");
}

export async function complete(area, path, changed) {
  const list = document.createElement("ul");
  list.id = "suggestions";
  list.className = "suggestions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Suggestions");
  list.hidden = true;
  area.after(list);
  const said = document.createElement("p");
  said.className = "unseen";
  said.setAttribute("role", "status");
  list.after(said);
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-haspopup", "listbox");

  let known = WORDS.map((name) => ({ name, kind: "SQL" }));
  let found = [], chosen = 0, from = 0;

  const close = () => {
    list.hidden = true;
    area.removeAttribute("aria-activedescendant");
    area.removeAttribute("aria-controls");
    said.textContent = "";
  };
  const show = () => {
    list.replaceChildren(...found.map((one, at) => {
      const item = document.createElement("li");
      item.id = `suggestion-${at}`;
      item.setAttribute("role", "option");
      item.setAttribute("aria-selected", String(at === chosen));
      const kind = document.createElement("small");
      kind.textContent = one.kind;
      item.append(one.name, " ", kind);
      item.addEventListener("pointerdown", (event) => { event.preventDefault(); chosen = at; take(); });
      return item;
    }));
    list.hidden = false;
    area.setAttribute("aria-controls", list.id);
    area.setAttribute("aria-activedescendant", `suggestion-${chosen}`);
    const at = caret(area);
    list.style.left = `${Math.min(at.left, area.clientWidth - 220)}px`;
    list.style.top = `${at.top}px`;
    said.textContent = `${found.length} suggestions`;
  };
  const take = () => {
    insertText(area, found[chosen].name, from, area.selectionStart);
    close();
    changed();
  };
  const look = () => {
    const before = area.value.slice(0, area.selectionStart);
    const typed = /("?[\w]*)$/.exec(before)[1];
    from = before.length - typed.length;
    const text = typed.replace('"', "").toLowerCase();
    const quoted = (before.match(/'/g)?.length ?? 0) % 2 === 1;
    if (!text || quoted || area.selectionStart !== area.selectionEnd) return close();
    const starts = (one) => one.name.replace('"', "").toLowerCase().startsWith(text);
    found = known.filter((one) => starts(one) && one.name.toLowerCase() !== text).slice(0, MOST);
    chosen = 0;
    if (found.length) show(); else close();
  };

  area.addEventListener("input", look);
  area.addEventListener("blur", close);
  area.addEventListener("click", close);
  area.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      chosen = (chosen + step + found.length) % found.length;
      show();
    } else if ((event.key === "Enter" && !event.ctrlKey && !event.metaKey) || (event.key === "Tab" && !event.shiftKey)) {
      take();
    } else if (event.key === "Escape") {
      close();
    } else {
      return;
    }
    event.preventDefault();
  });

  const reply = await fetch(path, { credentials: "same-origin" });
  if (!reply.ok || reply.redirected) return;
  const { tables } = await reply.json();
  const columns = new Map();
  for (const table of tables) for (const name of table.columns) {
    columns.set(name, [...(columns.get(name) ?? []), table.name]);
  }
  known = [
    ...[...columns].map(([name, of]) => ({ name, kind: of.length > 2 ? `${of.length} tables` : of.join(", ") })),
    ...tables.map((table) => ({ name: table.name, kind: "table" })),
    ...known,
  ];
}

// Where the cursor is in a text area: measured in a copy of it.
function caret(area) {
  const copy = document.createElement("div");
  copy.className = "shadow measuring";
  copy.textContent = area.value.slice(0, area.selectionStart);
  const mark = document.createElement("span");
  mark.textContent = "\u200b";
  copy.append(mark);
  area.before(copy);
  const at = { left: mark.offsetLeft, top: mark.offsetTop + mark.offsetHeight - area.scrollTop + 4 };
  copy.remove();
  return at;
}
