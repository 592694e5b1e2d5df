import { stem } from './stem.ts';
import { wordsOf } from './words.ts';

/** Kinds of what a tool does to the upstream's data. */
const effects = { read: 0, create: 1, update: 2, delete: 3 } as const;
export type Effect = (typeof effects)[keyof typeof effects];

/** The effect that an HTTP method stands for (RFC 9110, 9.3). */
export function effectOf(method: string): Effect {
  if (method === 'GET' || method === 'HEAD') return effects.read;
  if (method === 'DELETE') return effects.delete;
  return method === 'POST' ? effects.create : effects.update;
}

const verbs: Readonly<Record<keyof typeof effects, string>> = {
  read: 'get list read show find search look download compare count view fetch check',
  create: 'create add new make open insert register post send start upload invite attach publish trigger',
  update:
    'update edit change modify patch set replace rename close complete archive move assign mark approve enable disable',
  delete: 'delete remove destroy erase drop unassign detach cancel revoke',
};

const effectOfVerb: ReadonlyMap<string, Effect> = new Map(
  Object.entries(verbs).flatMap(([name, words]) =>
    words.split(' ').map((word): [string, Effect] => [stem(word), effects[name as keyof typeof verbs]]),
  ),
);

/** The effect that a query asks for, by its first verb. A query without one wants to read. */
export function wantedEffect(query: string): Effect {
  for (const word of wordsOf(query)) {
    const effect = effectOfVerb.get(stem(word));
    if (effect !== undefined) return effect;
  }
  return effects.read;
}
