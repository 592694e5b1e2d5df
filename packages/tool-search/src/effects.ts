import { isSafeMethod } from '@toolhost/tool-config/http/headers';
import { splitWords, stem } from './words.ts';

/** Effects of a tool on the upstream's data. */
const effects = { read: 0, create: 1, update: 2, delete: 3 } as const;
export type Effect = (typeof effects)[keyof typeof effects];
type WordLists = Readonly<Record<keyof typeof effects, string>>;

const verbs: WordLists = {
  read:
    'get list read show find search look download compare count view fetch check retrieve see return display inspect ' +
    'query export preview track tell which what who where how when',
  create:
    'create add new make open insert register post send start upload invite attach publish trigger buy purchase order ' +
    'submit give grant put run launch execute build book schedule share reply report pay charge import fork clone copy ' +
    'duplicate generate request sign follow subscribe save write dispatch retry restart rerun react convert link join',
  update:
    'update edit change modify patch set replace rename close complete archive move assign mark approve enable disable ' +
    'merge reopen lock unlock protect pause resume stop mute unmute scale adjust turn activate deactivate resize ' +
    'transfer restore skip seek hang end finish resolve pin cap raise lower increase decrease configure reset',
  delete:
    'delete remove destroy erase drop unassign detach cancel revoke leave unfollow unstar clear kick uninstall free prune',
};

/** Words that are verbs at the beginning of a query and mostly nouns elsewhere: "comment on a task". */
const openingVerbs: WordLists = {
  read: '',
  create: 'comment file log call message email star vote watch release note tag label text block ban',
  update: 'transition',
  delete: '',
};

/** Words before the first verb of a query that carry no meaning. */
const fillerWords = new Set('please i want need to would like can could you do how we let us'.split(' '));

/** Verbs at the beginning of a description that mark a POST tool as read-only. */
const readingVerbs = new Set(
  ['get', 'list', 'return', 'retrieve', 'search', 'find', 'fetch', 'read', 'query'].map(stem),
);

const effectsByVerb = indexByStem(verbs);
const effectsByOpeningVerb = indexByStem(openingVerbs);

function indexByStem(lists: WordLists): ReadonlyMap<string, Effect> {
  const effectsByStem = new Map<string, Effect>();
  for (const [name, words] of Object.entries(lists)) {
    for (const word of words.split(' ')) effectsByStem.set(stem(word), effects[name as keyof typeof effects]);
  }
  return effectsByStem;
}

/**
 * Returns the effect of a tool by its HTTP method (RFC 9110, 9.3). A POST tool counts as reading if its description
 * begins with a reading verb.
 */
export function getToolEffect(method: string, description: string): Effect {
  if (isSafeMethod(method)) return effects.read;
  if (method === 'DELETE') return effects.delete;
  if (method !== 'POST') return effects.update;
  const [firstWord = ''] = splitWords(description.slice(0, 60));
  return readingVerbs.has(stem(firstWord)) ? effects.read : effects.create;
}

/** Returns the effect that a query requests with its first verb; undefined for a query without a verb. */
export function getRequestedEffect(query: string): Effect | undefined {
  const words = splitWords(query);
  const meaningfulWords = words.slice(words.findIndex((word) => !fillerWords.has(word)));
  const [firstWord = ''] = meaningfulWords;
  const openingEffect = meaningfulWords.length > 1 ? effectsByOpeningVerb.get(firstWord) : undefined;
  if (openingEffect !== undefined) return openingEffect;
  const verb = meaningfulWords.find((word) => effectsByVerb.has(stem(word)));
  return verb === undefined ? undefined : effectsByVerb.get(stem(verb));
}

/**
 * Rates how well a tool's effect matches the requested one, from 0 to 1. Different changes match in part, because APIs
 * disagree about them: deleting may be an update that archives, and updating may create a new version.
 */
export function rateEffect(effect: number, requested: Effect | undefined): number {
  const expected = requested ?? effects.read;
  if (effect === expected) return 1;
  return effect === effects.read || expected === effects.read ? 0 : 0.36;
}
