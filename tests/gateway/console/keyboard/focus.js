// What a person with a keyboard alone needs of the element that has the focus. Each check gives a text, or "".
const NATURAL = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex], [role=button], [role=link]";
const LEAST_CONTRAST = 3; // WCAG 2.2, 1.4.11
const LEAST_WIDTH = 2; // CSS pixels

const written = (one) => one.cloneNode(true).outerHTML.replace(/\s+/g, " ").slice(0, 160);
const channels = (color) => color.match(/[\d.]+/g).map(Number);
const isClear = (color) => channels(color)[3] === 0;

function brightness(color) {
  const [red, green, blue] = channels(color).map((one) => {
    const part = one / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [low, high] = [brightness(one), brightness(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

function behind(one) {
  for (let at = one; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor;
    if (!isClear(color)) return color;
  }
  return "rgb(255, 255, 255)";
}

// The ring around an element: an outline, or a shadow.
function ringProblem(one) {
  const style = getComputedStyle(one);
  if (style.boxShadow !== "none") return "";
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < LEAST_WIDTH) return "has no ring";
  if (isClear(style.outlineColor)) return "has a ring without a color";
  const found = contrast(style.outlineColor, behind(one.parentElement));
  return found < LEAST_CONTRAST ? `has a ring with a contrast of ${found.toFixed(1)}` : "";
}

// A part of the element is in the window, inside everything that scrolls, and nothing covers it.
function placeProblem(one) {
  const first = one.getClientRects()[0];
  if (!first || first.width < 1 || first.height < 1) return "has no size";
  let [left, top, right, bottom] = [first.left, first.top, first.right, first.bottom];
  const cut = (box) => {
    [left, top] = [Math.max(left, box.left), Math.max(top, box.top)];
    [right, bottom] = [Math.min(right, box.right), Math.min(bottom, box.bottom)];
  };
  cut({ left: 0, top: 0, right: innerWidth, bottom: innerHeight });
  for (let at = one.parentElement; at && at !== document.body; at = at.parentElement) {
    if (getComputedStyle(at).overflow !== "visible") cut(at.getBoundingClientRect());
  }
  if (right - left < 2 || bottom - top < 2) return "is out of sight";
  const seen = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return seen && (one.contains(seen) || seen.contains(one)) ? "" : "is covered";
}

// Reading goes down, and to the right. Compared are the two parts of the page in which the elements are.
function orderProblem(before, now) {
  if (!before?.isConnected || !now?.isConnected || before === now || before.contains(now)) return "";
  if (before.matches(".skip")) return ""; // it lies over the beginning of the page while it has the focus
  let common = before;
  while (!common.contains(now)) common = common.parentElement;
  if (common === now) return `comes next to a part of itself: ${written(before)}`;
  const partOf = (one) => { while (one.parentElement !== common) one = one.parentElement; return one.getClientRects(); };
  const first = [...partOf(before)].at(-1), second = partOf(now)[0];
  const isBelow = second.top >= first.bottom - 2;
  const isRight = second.left >= first.right - 2 && second.bottom > first.top + 2;
  return isBelow || isRight ? "" : `is not in the order in which one reads: ${written(before)} comes before ${written(now)}`;
}

// All elements at which Tab should stop. Of a group of radio buttons it is the chosen one.
function expectedStops() {
  const chosen = (one) => {
    if (one.type !== "radio") return true;
    const group = [...document.getElementsByName(one.name)].filter((other) => other.form === one.form);
    return one === (group.find((other) => other.checked) ?? group[0]);
  };
  const isShown = (one) => one.checkVisibility({ visibilityProperty: true });
  return [...document.querySelectorAll(NATURAL)].filter(
    (one) => isShown(one) && !one.disabled && one.getAttribute("tabindex") !== "-1" && chosen(one));
}

// Where the focus is among the stops that are expected, and what is wrong with it.
function atStop(back) {
  const now = document.activeElement, before = globalThis.stopBefore;
  if (!now || now === document.body) { globalThis.stopBefore = null; return { at: null, wrong: "" }; }
  globalThis.stopBefore = now;
  const begins = now === expectedStops().at(back ? -1 : 0);
  const order = begins ? "" : back ? orderProblem(now, before) : orderProblem(before, now);
  const wrong = ringProblem(now) || placeProblem(now) || order;
  return { at: globalThis.expected?.indexOf(now) ?? -1, wrong: wrong && `${written(now)} ${wrong}` };
}
