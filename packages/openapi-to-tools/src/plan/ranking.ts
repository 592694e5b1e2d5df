import { stem } from '@toolhost/tool-search/words';
import type { ApiDescription, ApiOperation } from '../model.ts';
import { splitNameWords } from '../tools/names.ts';

/** Action of an operation on the noun of its path. */
type Action = keyof typeof actionWeights;

/** Weights of actions by how often agents use them. */
const actionWeights = { list: 1, get: 1, create: 0.97, search: 0.95, update: 0.92, act: 0.75, delete: 0.55 };
/**
 * Weights of actions on a part, such as the comments of an issue. Agents seldom read a single part without the others.
 */
const partActionWeights = { list: 1, get: 0.6, create: 1, search: 0.8, update: 0.7, act: 0.7, delete: 0.5 };
const commonActions = ['list', 'get', 'create', 'update'] as const;

const verbsByAction: { readonly [action in Action]: string } = {
  search: 'search query find lookup',
  list: 'list history',
  get: 'get info retrieve read show',
  create: 'create add post send upload',
  update: 'update edit set',
  delete: 'delete remove revoke',
  act: 'apply approve archive assign cancel capture change clone close complete confirm copy disable enable finalize invite join kick leave lock mark merge move open pay publish refund reject rename reopen restore resume run schedule start stop submit transfer unarchive unassign unlock void',
};
const actionByVerb = new Map(
  Object.entries(verbsByAction).flatMap(([action, verbs]) => verbs.split(' ').map((verb) => [verb, action as Action])),
);

/** Match words and parts of words of secondary parts of an API: permissions, setup, and administration. */
const secondaryPattern =
  /admin|announcement|audit|avatar|banner|billing|certificate|compliance|config|credential|deprecat|emoji|enterprise|experimental|extension|gitignore|identit|installation|integration|legacy|licen[cs]e|locale|metadata|migrat|oauth|password|permission|photo|plugin|preference|presence|propert|protection|quota|redact|restriction|retention|runner|saml|sandbox|schema|scheme|scim|secret|security|setting|telemetry|webhook/;
const secondaryWords = new Set(
  'addon app attribute auth authentication authorization batch beta bulk debug dnd domain event export feed field health healthcheck hook import internal key limit log many meta metric ping role screen session sso test theme token trash trashed type ui'
    .split(' ')
    .map(stem),
);
const secondarySummaryPattern = /\b(?:deprecated|beta|legacy|experimental)\b/i;

type Segment = { text: string; isParameter: boolean };

/** Operation, parsed into the words of its path. */
type ParsedOperation = {
  /** Stems of the nouns, outermost first. */
  nouns: string[];
  action: Action;
  /** Segment that names the action. */
  verb: string;
  /** Number of words or marks that classify the operation as secondary. */
  secondaryCount: number;
  /** True if it searches everything or identifies the caller. */
  isOverall: boolean;
};

/**
 * Returns the score of each operation for an agent, in input order, based only on the document. An operation acts on
 * the last noun of its path. A noun scores by the number of operations whose path or tags name it, and more if it can
 * be listed, read, created, and changed, or if the title or description names it. The score of a part, such as the
 * comments of an issue, also includes its whole. `tokens` are the token costs of the tools.
 */
export function scoreOperations(description: ApiDescription, tokens: readonly number[]): number[] {
  const { operations } = description;
  const paths = operations.map(({ path }) => splitSegments(path));
  const sharedCount = countSharedSegments(paths);
  const parsedOperations = operations.map((operation, index) =>
    parseOperation(operation, (paths[index] ?? []).slice(sharedCount)),
  );
  const nouns = new Nouns(description, parsedOperations);
  const scored = parsedOperations.map((parsed, index) => {
    const { ownNouns, value } = nouns.score(parsed);
    return {
      parsed,
      nouns: ownNouns,
      index,
      worth: (value * 0.3 ** parsed.secondaryCount) / (1 + (tokens[index] ?? 0) / 5000),
    };
  });
  const scores = scored.map((entry) => entry.worth);
  // Operations that repeat an action, and further special actions of a noun, score lower.
  const countByAction = new Map<string, number>();
  for (const entry of scored.toSorted((a, b) => b.worth - a.worth || a.index - b.index)) {
    const { action, verb } = entry.parsed;
    const isCommonAction = action !== 'act' && action !== 'delete';
    const key = isCommonAction ? JSON.stringify([entry.nouns, action, verb]) : entry.nouns.join('/');
    const previousCount = countByAction.get(key) ?? 0;
    countByAction.set(key, previousCount + 1);
    scores[entry.index] = isCommonAction
      ? entry.worth * (previousCount > 0 ? 0.6 : 1)
      : entry.worth / (1 + previousCount / 10);
  }
  return scores;
}

/** Nouns of a document and their scores. */
class Nouns {
  readonly #countByNoun = new Map<string, number>();
  readonly #actions = new Map<string, Set<Action>>();
  /** Number of operations in whose path a noun is the outermost one, or a part of another noun. */
  readonly #outerCountByNoun = new Map<string, number>();
  readonly #innerCountByNoun = new Map<string, number>();
  readonly #introWords: ReadonlySet<string>;
  /** Noun that most others are parts of, such as the repositories of a code host. */
  readonly #container: string | undefined;
  readonly #maxWeight: number;

  constructor({ title, description, operations }: ApiDescription, parsedOperations: readonly ParsedOperation[]) {
    this.#introWords = new Set(splitNameWords(`${title} ${description.slice(0, 600)}`).map(stem));
    const primaryOperations = parsedOperations.filter(({ secondaryCount }) => secondaryCount === 0);
    const countByOuterNoun = new Map<string, number>();
    for (const [index, { nouns, secondaryCount }] of parsedOperations.entries()) {
      if (secondaryCount > 0) continue;
      const tags = (operations[index]?.tags ?? []).flatMap((tag) => splitNameWords(tag).map(stem));
      for (const noun of new Set([...nouns, ...tags])) increment(this.#countByNoun, noun);
      if (nouns[0] !== undefined) increment(this.#outerCountByNoun, nouns[0]);
      if (nouns[0] !== undefined && nouns.length > 1) increment(countByOuterNoun, nouns[0]);
    }
    this.#container = [...countByOuterNoun].find(([, outerCount]) => outerCount > primaryOperations.length * 0.3)?.[0];
    for (const parsed of parsedOperations) {
      const ownNouns = this.#getOwnNouns(parsed);
      const noun = ownNouns.at(-1) ?? '';
      this.#actions.set(noun, (this.#actions.get(noun) ?? new Set()).add(parsed.action));
      if (parsed.secondaryCount > 0) continue;
      if (ownNouns[0] !== undefined && ownNouns[0] !== parsed.nouns[0]) increment(this.#outerCountByNoun, ownNouns[0]);
      for (const part of ownNouns.slice(1)) increment(this.#innerCountByNoun, part);
    }
    this.#maxWeight = Math.max(1, ...[...this.#countByNoun.keys()].map((noun) => this.#getWeight(noun)));
  }

  /** Returns the nouns below the container. */
  #getOwnNouns({ nouns }: ParsedOperation): readonly string[] {
    return nouns.length > 1 && nouns[0] === this.#container ? nouns.slice(1) : nouns;
  }

  #getWeight(noun: string): number {
    const actions = this.#actions.get(noun);
    const commonShare = commonActions.filter((action) => actions?.has(action)).length / commonActions.length;
    const isIntroduced = noun.split(' ').some((word) => this.#introWords.has(word));
    return (this.#countByNoun.get(noun) ?? 0) ** 0.4 * (0.5 + commonShare / 2) * (isIntroduced ? 1.15 : 1);
  }

  score(parsed: ParsedOperation): { ownNouns: readonly string[]; value: number } {
    const ownNouns = this.#getOwnNouns(parsed);
    const [noun = '', wholeNoun] = [ownNouns.at(-1), ownNouns.at(-2)];
    const weight = this.#getWeight(noun);
    const isPart = wholeNoun !== undefined;
    const base = isPart ? (weight + this.#getWeight(wholeNoun)) / 2 : weight;
    const baseWeight = parsed.isOverall ? Math.max(base, 0.6 * this.#maxWeight + weight / 2) : Math.max(base, 0.5);
    const value =
      baseWeight *
      actionWeights[parsed.action] *
      (isPart ? partActionWeights[parsed.action] : 1) *
      0.9 ** (ownNouns.length - 1);
    return { ownNouns, value: value * this.#getPositionFactor(parsed, ownNouns) };
  }

  /**
   * Returns a factor that lowers the score of nouns listed below another noun although they have their own path, and of
   * nouns outside the container.
   */
  #getPositionFactor({ nouns, action, isOverall }: ParsedOperation, ownNouns: readonly string[]): number {
    const noun = ownNouns.at(-1) ?? '';
    const isElsewhere =
      ownNouns.length > 1 && (this.#outerCountByNoun.get(noun) ?? 0) >= (this.#innerCountByNoun.get(noun) ?? 0);
    const isOutside = this.#container !== undefined && nouns[0] !== this.#container && !isOverall;
    const changesContainer =
      ownNouns.length === 1 && noun === this.#container && /^(?:update|act|delete)$/.test(action);
    return (isElsewhere ? 0.5 : 1) * (isOutside ? 0.7 : 1) * (changesContainer ? 0.5 : 1);
  }
}

function increment(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Splits a path into segments. `chat.postMessage` and `files:copy` are two segments each. */
function splitSegments(path: string): Segment[] {
  const [route = ''] = path.split(/[?#]/, 1);
  return route.split('/').flatMap((text): Segment[] => {
    if (/[{}]/.test(text)) return [{ text, isParameter: true }];
    const names = text.replace(/\.(?:json|xml)$/, '').split(/[.:]/);
    return names.filter((name) => name !== '').map((name) => ({ text: name, isParameter: false }));
  });
}

/** Returns the number of leading segments that nearly all paths share, such as `/rest/api/3`. */
function countSharedSegments(paths: readonly (readonly Segment[])[]): number {
  for (let index = 0; ; index++) {
    const counts = new Map<string, number>();
    for (const path of paths) {
      const segment = path[index];
      if (segment && !segment.isParameter && path.length > index + 1) increment(counts, segment.text);
    }
    if (Math.max(0, ...counts.values()) < Math.max(1, paths.length * 0.9)) return index;
  }
}

function parseOperation(
  { method, summary, isDeprecated }: ApiOperation,
  segments: readonly Segment[],
): ParsedOperation {
  const [firstSegment] = segments;
  const ownSegments =
    firstSegment !== undefined && /^v\d+(?:\.\d+)?$/i.test(firstSegment.text) ? segments.slice(1) : segments;
  const named = ownSegments.filter(({ isParameter }) => !isParameter);
  const isItem = ownSegments.at(-1)?.isParameter === true;
  const nouns: string[] = [];
  let verbAction: Action | undefined;
  for (const [index, { text, isParameter }] of ownSegments.entries()) {
    if (isParameter) continue;
    const words = splitNameWords(text);
    const action = actionByVerb.get(words[0] ?? '');
    const isLast = index === ownSegments.length - 1;
    // The verb is the last segment, or the first one as in `/search/issues`. `/orders/{id}/refund` has a verb;
    // `/refund/{id}` does not.
    const isVerb = action !== undefined && verbAction === undefined && ownSegments[index + 1]?.isParameter !== true;
    if (isVerb && ((isLast && named.length > 1) || (index === 0 && (!isLast || action === 'search'))))
      verbAction = action;
    else nouns.push(words.map(stem).join(' '));
  }
  const byMethod = { GET: isItem ? 'get' : 'list', POST: isItem ? 'update' : 'create', DELETE: 'delete' } as const;
  const isSearch = actionByVerb.get(named[0]?.text ?? '') === 'search';
  const identifiesCaller =
    method === 'GET' && named.length <= 2 && /^(?:me|myself|self|whoami)$/.test(named.at(-1)?.text ?? '');
  const secondaryCount = ownSegments.filter((segment) => isSecondary(segment)).length;
  return {
    nouns,
    action: isSearch ? 'search' : (verbAction ?? byMethod[method as keyof typeof byMethod] ?? 'update'),
    verb: verbAction === undefined ? '' : (named.at(-1)?.text ?? ''),
    secondaryCount: secondaryCount + (isDeprecated ? 3 : 0) + (secondarySummaryPattern.test(summary) ? 1 : 0),
    isOverall: isSearch || identifiesCaller,
  };
}

function isSecondary({ text, isParameter }: Segment): boolean {
  return (
    secondaryPattern.test(text.toLowerCase()) ||
    (!isParameter && splitNameWords(text).some((word) => secondaryWords.has(stem(word))))
  );
}
