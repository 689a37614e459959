/** Light or dark: as the system says, until the reader says otherwise. */

import { el } from "./dom";

/** The button that turns the page over; also sets the theme now. */
export function themeButton(): HTMLButtonElement {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = el("button", { type: "button", class: "theme" });
  let own: boolean | null = null;
  const apply = (): void => {
    const dark = own ?? system.matches;
    document.documentElement.dataset["theme"] = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Use light colours" : "Use dark colours");
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    own = !(own ?? system.matches);
    apply();
  });
  apply();
  return button;
}
