/** A table that sorts by a click or Enter on a column's head. */

import { el } from "../dom";

export interface Column<Row> {
  title: string;
  /** What stands in the cell. */
  cell: (row: Row) => Node | string;
  /** What it is sorted by; null comes last. Without it the column cannot be sorted. */
  key?: (row: Row) => number | string | null;
  /** Numbers stand to the right. */
  numeric?: boolean;
  /** What the column means, shown when the pointer rests on its head. */
  about?: string;
  /** May be hidden on a narrow screen. */
  minor?: boolean;
}

export interface TableData<Row> {
  caption: string;
  columns: Column<Row>[];
  rows: Row[];
}

/** Draw the table in the given order of rows. */
export function render<Row>(container: HTMLElement, { caption, columns, rows }: TableData<Row>): void {
  const body = el("tbody");
  const heads = columns.map((column) => head(column));
  const fill = (ordered: Row[]): void => body.replaceChildren(...ordered.map((row) => el("tr", {}, ...columns.map((column) => cell(column, row)))));
  columns.forEach((column, index) => {
    const button = heads[index]?.querySelector("button");
    button?.addEventListener("click", () => {
      const rising = heads[index]?.getAttribute("aria-sort") !== "descending" ? -1 : 1;
      for (const other of heads) other.removeAttribute("aria-sort");
      heads[index]?.setAttribute("aria-sort", rising < 0 ? "descending" : "ascending");
      fill(sorted(rows, column, rising));
    });
  });
  fill(rows);
  const table = el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...heads)), body);
  container.replaceChildren(el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table));
}

function head<Row>(column: Column<Row>): HTMLTableCellElement {
  const content = column.key ? el("button", { type: "button" }, column.title) : column.title;
  return el("th", { scope: "col", class: classes(column), title: column.about ?? null }, content);
}

function cell<Row>(column: Column<Row>, row: Row): HTMLTableCellElement {
  return el("td", { class: classes(column) }, column.cell(row));
}

const classes = <Row>(column: Column<Row>): string | null => [column.numeric ? "number" : "", column.minor ? "minor" : ""].filter(Boolean).join(" ") || null;

function sorted<Row>(rows: Row[], column: Column<Row>, direction: number): Row[] {
  const key = column.key ?? ((): null => null);
  return [...rows].sort((a, b) => {
    const [left, right] = [key(a), key(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return direction * (left < right ? -1 : left > right ? 1 : 0);
  });
}
