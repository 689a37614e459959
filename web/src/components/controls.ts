/** Menus that filter what a page shows. */

import { el } from "../dom";

/** A menu with its title; options are [value, text]. */
export function select(title: string, options: [string, string][], value: string, onChange: (value: string) => void): HTMLElement {
  const menu = el("select", {}, ...options.map(([key, text]) => el("option", { value: key, selected: key === value }, text)));
  menu.addEventListener("change", () => onChange(menu.value));
  return el("label", { class: "control" }, el("span", {}, title), menu);
}
