import { createHash } from 'node:crypto';

const most = 64;

/** Names of the arguments of one tool: each is given once, in the form that every client and the configuration take. */
export class ArgumentNames {
  readonly #taken = new Set<string>();

  has(wireName: string): boolean {
    return this.#taken.has(plainName(wireName));
  }

  /** The name for a name on the wire: the same where possible, such as `filter_status` for `filter[status]`. */
  take(wireName: string): string {
    const plain = plainName(wireName);
    let name = plain;
    for (let count = 2; this.#taken.has(name); count++) name = `${plain.slice(0, most - 4)}_${count}`;
    this.#taken.add(name);
    return name;
  }
}

function plainName(wireName: string): string {
  const words = wireName
    .replaceAll('>=', '_gte')
    .replaceAll('<=', '_lte')
    .replaceAll('>', '_gt')
    .replaceAll('<', '_lt')
    .replaceAll(/[^A-Za-z0-9_.-]+/g, '_')
    .replaceAll(/^[_.-]+|(?<![_.-])[_.-]+$/g, (edge) =>
      /^_+$/.test(edge) && wireName.includes(edge) && /^\w+$/.test(wireName) ? edge : '',
    );
  const started = /^[A-Za-z_]/.test(words) ? words : `_${words}`;
  const safe = started === '__proto__' ? `${started}_` : started;
  return safe.length <= most ? safe : `${safe.slice(0, most - 5)}_${shortHash(wireName)}`;
}

/** Four characters that stay the same for the same text. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text.toWellFormed()).digest('hex').slice(0, 4);
}
