/** Elements without markup: every text goes in as a text node, so that no name can become code. */

type Child = Node | string | null;
type Attributes = Record<string, string | number | boolean | null>;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element; null and false attributes are left out. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** A name of the data, isolated so that right-to-left marks cannot spill over. */
export function nameTag(name: string, kind: "event" | "label" | "plain" = "plain"): HTMLElement {
  return el("bdi", { class: `name ${kind}`, title: visible(name) }, visible(name));
}

/** Control and direction characters made visible, as ⟨U+000A⟩; everything else as it is. */
export function visible(name: string): string {
  return name.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (character) => {
    const code = character.charCodeAt(0);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/** Draw now and whenever the container changes its width. */
export function whenSized(container: HTMLElement, draw: (width: number) => void): void {
  let drawn = 0;
  const observer = new ResizeObserver(() => {
    if (!container.isConnected) return observer.disconnect();
    const width = Math.floor(container.clientWidth);
    if (width > 0 && width !== drawn) draw((drawn = width));
  });
  observer.observe(container);
}

let pen: CanvasRenderingContext2D | null = null;

/** Width of a text in pixels in the page's font. */
export function textWidth(text: string, size: number, weight = 400): number {
  pen ??= document.createElement("canvas").getContext("2d");
  if (!pen) return text.length * size * 0.6;
  pen.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(text).width;
}

/** The longest beginning of a text that fits, with an ellipsis where something is left out. */
export function fitted(text: string, width: number, size: number, weight = 400): string {
  if (textWidth(text, size, weight) <= width) return text;
  const letters = [...text];
  let [low, high] = [0, letters.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(`${letters.slice(0, middle).join("")}…`, size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return `${letters.slice(0, low).join("")}…`;
}

/** The text in at most so many lines that fit, broken between words; what is left over ends in an ellipsis. */
export function wrapped(text: string, width: number, size: number, most: number, weight = 400): string[] {
  const lines: string[] = [];
  const words = text.split(" ");
  while (words.length && lines.length < most) {
    let line = words.shift() ?? "";
    while (words.length && textWidth(`${line} ${words[0]}`, size, weight) <= width) line += ` ${words.shift()}`;
    lines.push(line);
  }
  if (words.length) lines.push(`${lines.pop() ?? ""} ${words.join(" ")}`);
  return lines.map((line) => fitted(line, width, size, weight));
}

/** A position in a sequence that several drawings share: the one under the pointer or chosen by key. */
export class Cursor {
  position: number | null = null;
  private readonly listeners: ((position: number | null) => void)[] = [];

  onMove(listener: (position: number | null) => void): void {
    this.listeners.push(listener);
    listener(this.position);
  }

  move(position: number | null): void {
    this.position = position;
    for (const listener of this.listeners) listener(position);
  }
}
