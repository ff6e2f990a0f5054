// What tests ask of a page. Each function gives a list of complaints.

window.names = () => {
  const found = [];
  const each = (selector, wrong, words) => {
    for (const one of document.querySelectorAll(selector)) if (wrong(one)) found.push(`${words}: ${one.outerHTML.slice(0, 80)}`);
  };
  if (document.documentElement.lang !== "en") found.push("no language");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  for (const name of ["header", "main", "footer", "nav[aria-label]"]) if (!document.querySelector(name)) found.push(`no ${name}`);
  const levels = Array.from(document.querySelectorAll("h1,h2,h3,h4"), (one) => Number(one.tagName[1]));
  levels.forEach((level, at) => {
    if (at && level > levels[at - 1] + 1) found.push("a heading skips a level");
  });
  each("input", (one) => !one.labels.length, "an input without a label");
  each("img", (one) => !one.hasAttribute("alt"), "an image without alt");
  each("a,button,summary", (one) => !one.textContent.trim(), "a control without a name");
  each("svg", (one) => !one.closest("[aria-hidden=true]"), "a picture that would be read aloud");
  each("table", (one) => !one.caption || one.querySelector("th:not([scope])"), "a table without names");
  each("[aria-labelledby]", (one) => !document.getElementById(one.getAttribute("aria-labelledby")), "a label that is not there");
  const ids = Array.from(document.querySelectorAll("[id]"), (one) => one.id);
  if (new Set(ids).size !== ids.length) found.push("an id twice");
  return found;
};

window.contrast = () => {
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const linear = (v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !node.getClientRects().length) continue;
    if (node.closest(".unseen-text, script")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.add(`${node.tagName} ${node.className} ${ratio.toFixed(2)}`);
  }
  return [...low];
};

window.widths = (selector) => Array.from(document.querySelectorAll(selector), (one) => one.getBoundingClientRect().width);

window.fills = (selector) => [...new Set(Array.from(document.querySelectorAll(selector), (one) => getComputedStyle(one).fill))];
