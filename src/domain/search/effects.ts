import { isSafeMethod } from '../http/headers.ts';
import { stem, wordsOf } from './words.ts';

/** Effects of a tool on the upstream's data. */
const effects = { read: 0, create: 1, update: 2, delete: 3 } as const;
export type Effect = (typeof effects)[keyof typeof effects];
type Lists = Readonly<Record<keyof typeof effects, string>>;

const verbs: Lists = {
  read:
    'get list read show find search look download compare count view fetch check retrieve see return display inspect ' +
    'query export preview track tell which what who where how when',
  create:
    'create add new make open insert register post send start upload invite attach publish trigger buy purchase order ' +
    'submit give grant put run launch execute build book schedule share reply report pay charge import fork clone copy ' +
    'duplicate generate request sign follow subscribe save write dispatch retry restart rerun react convert link join',
  update:
    'update edit change modify patch set replace rename close complete archive move assign mark approve enable disable ' +
    'merge reopen lock unlock protect pause resume stop cancel mute unmute scale adjust turn activate deactivate resize ' +
    'transfer restore skip seek hang end finish resolve pin cap raise lower increase decrease configure reset',
  delete:
    'delete remove destroy erase drop unassign detach cancel revoke leave unfollow unstar clear kick uninstall free prune',
};

/** Words that are verbs at the beginning of a query and mostly nouns elsewhere: "comment on a task". */
const openingVerbs: Lists = {
  read: '',
  create: 'comment file log call message email star vote watch release note tag label text block ban',
  update: 'transition',
  delete: '',
};

/** Words before the first verb of a query that carry no meaning. */
const politeWords = new Set('please i want need to would like can could you do how we let us'.split(' '));

/** Verbs at the beginning of a description that mark a POST tool as read-only. */
const readingVerbs = new Set(
  ['get', 'list', 'return', 'retrieve', 'search', 'find', 'fetch', 'read', 'query'].map(stem),
);

const effectOfVerb = byStem(verbs);
const effectOfOpening = byStem(openingVerbs);

function byStem(lists: Lists): ReadonlyMap<string, Effect> {
  const found = new Map<string, Effect>();
  for (const [name, words] of Object.entries(lists)) {
    for (const word of words.split(' ')) found.set(stem(word), effects[name as keyof typeof effects]);
  }
  return found;
}

/**
 * Returns the effect of a tool by its HTTP method (RFC 9110, 9.3). A POST tool counts as reading if its description
 * begins with a reading verb.
 */
export function effectOfTool(method: string, description: string): Effect {
  if (isSafeMethod(method)) return effects.read;
  if (method === 'DELETE') return effects.delete;
  if (method !== 'POST') return effects.update;
  const [first = ''] = wordsOf(description.slice(0, 60));
  return readingVerbs.has(stem(first)) ? effects.read : effects.create;
}

/** Returns the effect that a query requests with its first verb; undefined for a query without a verb. */
export function wantedEffect(query: string): Effect | undefined {
  const words = wordsOf(query);
  const rest = words.slice(words.findIndex((word) => !politeWords.has(word)));
  const [first = ''] = rest;
  const opening = rest.length > 1 ? effectOfOpening.get(first) : undefined;
  if (opening !== undefined) return opening;
  const verb = rest.find((word) => effectOfVerb.has(stem(word)));
  return verb === undefined ? undefined : effectOfVerb.get(stem(verb));
}

/**
 * Rates how well a tool's effect matches the requested one, from 0 to 1. APIs disagree about which operations are
 * creations and which are updates.
 */
export function likeness(effect: number, asked: Effect | undefined): number {
  const wanted = asked ?? effects.read;
  if (effect === wanted) return 1;
  return effect === effects.read || wanted === effects.read ? 0 : 0.36;
}
