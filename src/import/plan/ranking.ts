import { stem } from '../../domain/search/words.ts';
import type { ApiDescription, ApiOperation } from '../model.ts';
import { nameWords } from '../tools/names.ts';

/** Action of an operation on the noun of its path. */
type Action = keyof typeof actionWeights;

/** Weights of actions by how often agents use them. */
const actionWeights = { list: 1, get: 1, create: 0.97, search: 0.95, update: 0.92, act: 0.75, delete: 0.55 };
/**
 * Weights of actions on a part, such as the comments of an issue. Agents seldom read a single part without the others.
 */
const partWeights = { list: 1, get: 0.6, create: 1, search: 0.8, update: 0.7, act: 0.7, delete: 0.5 };
const usualActions = ['list', 'get', 'create', 'update'] as const;

const verbsOf: { readonly [action in Action]: string } = {
  search: 'search query find lookup',
  list: 'list history',
  get: 'get info retrieve read show',
  create: 'create add post send upload',
  update: 'update edit set',
  delete: 'delete remove revoke',
  act: 'apply approve archive assign cancel capture change clone close complete confirm copy disable enable finalize invite join kick leave lock mark merge move open pay publish refund reject rename reopen restore resume run schedule start stop submit transfer unarchive unassign unlock void',
};
const actionOfVerb = new Map(
  Object.entries(verbsOf).flatMap(([action, verbs]) => verbs.split(' ').map((verb) => [verb, action as Action])),
);

/** Words and parts of words that mark secondary parts of an API: permissions, setup, and administration. */
const asidePart =
  /admin|announcement|audit|avatar|banner|billing|certificate|compliance|config|credential|deprecat|emoji|enterprise|experimental|extension|gitignore|identit|installation|integration|legacy|licen[cs]e|locale|metadata|migrat|oauth|password|permission|photo|plugin|preference|presence|propert|protection|quota|redact|restriction|retention|runner|saml|sandbox|schema|scheme|scim|secret|security|setting|telemetry|webhook/;
const asideWords = new Set(
  'addon app attribute auth authentication authorization batch beta bulk debug dnd domain event export feed field health healthcheck hook import internal key limit log many meta metric ping role screen session sso test theme token trash trashed type ui'
    .split(' ')
    .map(stem),
);
const asideSummary = /\b(?:deprecated|beta|legacy|experimental)\b/i;

type Segment = { text: string; isParameter: boolean };

/** Operation, parsed into the words of its path. */
type Read = {
  /** Stems of the nouns, outermost first. */
  nouns: string[];
  action: Action;
  /** Segment that names the action. */
  verb: string;
  /** Number of words or marks that classify the operation as secondary. */
  aside: number;
  /** True if it searches everything or identifies the caller. */
  isOverall: boolean;
};

/**
 * Returns the score of each operation for an agent, in input order, based only on the document. An operation acts on
 * the last noun of its path. A noun scores by the number of operations whose path or tags name it. It scores more if it
 * can be listed, read, created, and changed, and if the title or description names it. The score of a part also
 * includes its whole. `tokens` are the token costs of the tools.
 */
export function worthOfOperations(description: ApiDescription, tokens: readonly number[]): number[] {
  const { operations } = description;
  const paths = operations.map(({ path }) => segmentsOf(path));
  const shared = sharedSegments(paths);
  const all = operations.map((operation, index) => readOf(operation, (paths[index] ?? []).slice(shared)));
  const nouns = new Nouns(description, all);
  const found = all.map((read, index) => {
    const { own, value } = nouns.worthOf(read);
    return { read, own, index, worth: (value * 0.3 ** read.aside) / (1 + (tokens[index] ?? 0) / 5000) };
  });
  const worth = found.map((one) => one.worth);
  // Operations that repeat an action, and further special actions of a noun, score lower.
  const seen = new Map<string, number>();
  for (const one of found.toSorted((a, b) => b.worth - a.worth || a.index - b.index)) {
    const { action, verb } = one.read;
    const isUsual = action !== 'act' && action !== 'delete';
    const key = isUsual ? JSON.stringify([one.own, action, verb]) : one.own.join('/');
    const before = seen.get(key) ?? 0;
    seen.set(key, before + 1);
    worth[one.index] = isUsual ? one.worth * (before > 0 ? 0.6 : 1) : one.worth / (1 + before / 10);
  }
  return worth;
}

/** Nouns of a document and their scores. */
class Nouns {
  readonly #named = new Map<string, number>();
  readonly #actions = new Map<string, Set<Action>>();
  /** Number of times that a noun is the outermost one in a path, and a part of another noun. */
  readonly #outer = new Map<string, number>();
  readonly #inner = new Map<string, number>();
  readonly #intro: ReadonlySet<string>;
  /** Noun that most others are parts of, such as the repositories of a code host. */
  readonly #container: string | undefined;
  readonly #heaviest: number;

  constructor({ title, description, operations }: ApiDescription, all: readonly Read[]) {
    this.#intro = new Set(nameWords(`${title} ${description.slice(0, 600)}`).map(stem));
    const plain = all.filter(({ aside }) => aside === 0);
    const inside = new Map<string, number>();
    for (const [index, { nouns, aside }] of all.entries()) {
      if (aside > 0) continue;
      const tags = (operations[index]?.tags ?? []).flatMap((tag) => nameWords(tag).map(stem));
      for (const noun of new Set([...nouns, ...tags])) count(this.#named, noun);
      if (nouns[0] !== undefined) count(this.#outer, nouns[0]);
      if (nouns[0] !== undefined && nouns.length > 1) count(inside, nouns[0]);
    }
    this.#container = [...inside].find(([, times]) => times > plain.length * 0.3)?.[0];
    for (const read of all) {
      const own = this.#own(read);
      const noun = own.at(-1) ?? '';
      this.#actions.set(noun, (this.#actions.get(noun) ?? new Set()).add(read.action));
      if (read.aside > 0) continue;
      if (own[0] !== undefined && own[0] !== read.nouns[0]) count(this.#outer, own[0]);
      for (const part of own.slice(1)) count(this.#inner, part);
    }
    this.#heaviest = Math.max(1, ...[...this.#named.keys()].map((noun) => this.#weightOf(noun)));
  }

  /** Returns the nouns below the container. */
  #own({ nouns }: Read): readonly string[] {
    return nouns.length > 1 && nouns[0] === this.#container ? nouns.slice(1) : nouns;
  }

  #weightOf(noun: string): number {
    const actions = this.#actions.get(noun);
    const usual = usualActions.filter((action) => actions?.has(action)).length / usualActions.length;
    const isIntroduced = noun.split(' ').some((word) => this.#intro.has(word));
    return (this.#named.get(noun) ?? 0) ** 0.4 * (0.5 + usual / 2) * (isIntroduced ? 1.15 : 1);
  }

  worthOf(read: Read): { own: readonly string[]; value: number } {
    const own = this.#own(read);
    const [noun = '', whole] = [own.at(-1), own.at(-2)];
    const weight = this.#weightOf(noun);
    const isPart = whole !== undefined;
    const base = isPart ? (weight + this.#weightOf(whole)) / 2 : weight;
    const usual = read.isOverall ? Math.max(base, 0.6 * this.#heaviest + weight / 2) : Math.max(base, 0.5);
    const value =
      usual * actionWeights[read.action] * (isPart ? partWeights[read.action] : 1) * 0.9 ** (own.length - 1);
    return { own, value: value * this.#placeOf(read, own) };
  }

  /**
   * Returns a factor that lowers the score of nouns listed below another noun although they have their own path, and of
   * nouns outside the container.
   */
  #placeOf({ nouns, action, isOverall }: Read, own: readonly string[]): number {
    const noun = own.at(-1) ?? '';
    const isElsewhere = own.length > 1 && (this.#outer.get(noun) ?? 0) >= (this.#inner.get(noun) ?? 0);
    const isOutside = this.#container !== undefined && nouns[0] !== this.#container && !isOverall;
    const isOfContainer = own.length === 1 && noun === this.#container && /^(?:update|act|delete)$/.test(action);
    return (isElsewhere ? 0.5 : 1) * (isOutside ? 0.7 : 1) * (isOfContainer ? 0.5 : 1);
  }
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

/** Splits a path into segments; `chat.postMessage` and `files:copy` are two segments each. */
function segmentsOf(path: string): Segment[] {
  const [route = ''] = path.split(/[?#]/, 1);
  return route.split('/').flatMap((text): Segment[] => {
    if (/[{}]/.test(text)) return [{ text, isParameter: true }];
    const parts = text.replace(/\.(?:json|xml)$/, '').split(/[.:]/);
    return parts.filter((part) => part !== '').map((part) => ({ text: part, isParameter: false }));
  });
}

/** Returns the number of leading segments that nearly all paths share, such as `/rest/api/3`. */
function sharedSegments(paths: readonly (readonly Segment[])[]): number {
  for (let at = 0; ; at++) {
    const counts = new Map<string, number>();
    for (const path of paths) {
      const segment = path[at];
      if (segment && !segment.isParameter && path.length > at + 1) count(counts, segment.text);
    }
    if (Math.max(0, ...counts.values()) < Math.max(1, paths.length * 0.9)) return at;
  }
}

function readOf({ method, summary, isDeprecated }: ApiOperation, segments: readonly Segment[]): Read {
  const [first] = segments;
  const own = first !== undefined && /^v\d+(?:\.\d+)?$/i.test(first.text) ? segments.slice(1) : segments;
  const named = own.filter(({ isParameter }) => !isParameter);
  const isItem = own.at(-1)?.isParameter === true;
  const nouns: string[] = [];
  let found: Action | undefined;
  for (const [index, { text, isParameter }] of own.entries()) {
    if (isParameter) continue;
    const words = nameWords(text);
    const action = actionOfVerb.get(words[0] ?? '');
    const isEnd = index === own.length - 1;
    // The verb is the last segment, or the first one as in `/search/issues`. `/orders/{id}/refund` has a verb;
    // `/refund/{id}` does not.
    const isVerb = action !== undefined && found === undefined && own[index + 1]?.isParameter !== true;
    if (isVerb && ((isEnd && named.length > 1) || (index === 0 && (!isEnd || action === 'search')))) found = action;
    else nouns.push(words.map(stem).join(' '));
  }
  const byMethod = { GET: isItem ? 'get' : 'list', POST: isItem ? 'update' : 'create', DELETE: 'delete' } as const;
  const isSearch = actionOfVerb.get(named[0]?.text ?? '') === 'search';
  const asksWho = method === 'GET' && named.length <= 2 && /^(?:me|myself|self|whoami)$/.test(named.at(-1)?.text ?? '');
  const aside = own.filter((segment) => isAside(segment)).length;
  return {
    nouns,
    action: isSearch ? 'search' : (found ?? byMethod[method as keyof typeof byMethod] ?? 'update'),
    verb: found === undefined ? '' : (named.at(-1)?.text ?? ''),
    aside: aside + (isDeprecated ? 3 : 0) + (asideSummary.test(summary) ? 1 : 0),
    isOverall: isSearch || asksWho,
  };
}

function isAside({ text, isParameter }: Segment): boolean {
  return (
    asidePart.test(text.toLowerCase()) || (!isParameter && nameWords(text).some((word) => asideWords.has(stem(word))))
  );
}
