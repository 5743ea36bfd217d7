// The two ways to make an element, and small things that every part of the page needs.

const SVG = "http://www.w3.org/2000/svg";

/** Return an HTML element; `on…` properties are listeners, `class` and `data-…` attributes. */
export function h(tag, properties = {}, ...children) {
  return filled(document.createElement(tag), properties, children);
}

/** Return an SVG element. */
export function s(tag, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), properties, children);
}

function filled(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) element.setAttribute(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** Replace what is in an element. */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter((child) => child !== null));
}

/** Say something to those who do not see the page. */
export function announce(text) {
  byId("say").textContent = text;
}

/** Return what was kept under a name, or `otherwise`; `area` is the browser's, or this tab's. */
export function recall(name, otherwise, area = "localStorage") {
  try {
    return JSON.parse(window[area].getItem(`retinue.${name}`)) ?? otherwise;
  } catch {
    return otherwise; // storage may be forbidden, or hold what another version left
  }
}

export function remember(name, value, area = "localStorage") {
  try {
    window[area].setItem(`retinue.${name}`, JSON.stringify(value));
  } catch {
    // Without storage the page works, but forgets its matches when it is left.
  }
}
