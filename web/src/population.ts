/** What only a population folder knows: rules beside an expert's, how labels hang together, what changed with time. */

export type Relation = "same" | "stricter" | "looser" | "contradicting" | "unknown";

/** An expert's rule beside the proposed one. */
export interface Expert {
  rule: string;
  relation: Relation;
  sentence: string;
  /** Since when and until when it is in force, ISO 8601; null = always. */
  from: string | null;
  to: string | null;
  /** Sequences in which only the proposed rule holds, a few of them. */
  only_proposed: string[];
  only_expert: string[];
}

/** A rule proposed from many sequences. */
export interface RuleCard {
  label: string;
  /** null = none could be proposed. */
  rule: string | null;
  /** "proposed", or why it is not stated; null = not known. */
  status: string | null;
  /** The rule the dataset publishes. */
  published: string | null;
  /** null = nobody compared. */
  expert: Expert | null;
  figures: [string, number | string][];
  /** Why the proposal is what it is. */
  reasons: string[];
  /** A part of the rule, what could stand in its place, and the sequences that speak for either. */
  twins: [string, string, number, number][];
  /** Held-out counter-examples, a few of them. */
  rule_without_label: string[];
  label_without_rule: string[];
}

export type PairVerdict = "still dependent" | "explained by shared causes" | "explained by their boundaries" | "not resolvable" | "independent";

/** Two labels. */
export interface Interplay {
  a: string;
  b: string;
  verdict: PairVerdict;
  shared: string[];
  together: number | null;
  dependence_before: number | null;
  p_before: number | null;
  dependence_after: number | null;
  p_after: number | null;
  /** Mean fall of each label's probability without the shared causes. */
  fall_a: number | null;
  fall_b: number | null;
}

interface Window {
  from: string;
  to: string;
  q_value: number | null;
  changed: boolean;
}

export interface EffectWindow extends Window {
  tested: number | null;
  effect: number | null;
  effect_elsewhere: number | null;
}

export interface RuleWindow extends Window {
  positives: number | null;
  precision: number | null;
  precision_elsewhere: number | null;
  recall: number | null;
  recall_elsewhere: number | null;
  rule_here: string | null;
  relation: Relation | null;
  /** Not null: no window, but a part of the rule from the likeliest date of its change on; `elsewhere` = before. */
  part?: string | null;
  /** The rule's word where the part alone decides. */
  says?: boolean | null;
  /** The last day before the change. */
  until?: string | null;
  decided?: number | null;
  came?: number | null;
  decided_elsewhere?: number | null;
  came_elsewhere?: number | null;
  rule_elsewhere?: string | null;
}

/** Of those compared, the ones that changed in some window, with all their windows. */
export interface Changes<Subject> {
  compared: number;
  changed: Subject[];
}

export interface PopulationPages {
  settings: { alpha: number | null; delta: number | null; window_days: number | null };
  /** Pairs tested on observed labels, and those that hold up at `alpha` over all of them. */
  world: { tested: number; held_up: number } | null;
  /** Whose rules the proposals stand beside. */
  expert: string | null;
  /** null = nobody looked; so below. */
  interplay: Interplay[] | null;
  changed_effects: Changes<{ label: string; event: string; windows: EffectWindow[] }> | null;
  changed_rules: Changes<{ label: string; rule: string; windows: RuleWindow[] }> | null;
}
