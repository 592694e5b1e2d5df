import { randomUUID } from 'node:crypto';
import { isObjectJson } from '../../domain/json/object-json.ts';

/**
 * Writes JSON in which texts that are JSON already stand as they are: arguments that a model wrote keep their digits, and
 * however they look, they are neither parsed nor written again.
 */
export class SplicedJson {
  readonly #mark = randomUUID();
  readonly #texts: string[] = [];

  /** Stands for a JSON object given as text; for `{}` where the text is none, which a model reads in the result of its call. */
  object(text: string): string {
    return this.#add(isObjectJson(text) ? text : '{}');
  }

  /** Stands for the members of a JSON object given as text, to be spread into another object. */
  members(text: string | undefined): object {
    const inner = text === undefined || !isObjectJson(text) ? '' : text.trim().slice(1, -1).trim();
    return inner === '' ? {} : { [this.#add(inner)]: 0 };
  }

  /** The JSON of a value, with the texts in it. */
  stringify(value: object): string {
    const marks = new RegExp(`"${this.#mark}:(\\d+)"(:0)?`, 'g');
    return JSON.stringify(value).replaceAll(marks, (_, index: string) => this.#texts[Number(index)] ?? '');
  }

  #add(text: string): string {
    return `${this.#mark}:${this.#texts.push(text) - 1}`;
  }
}
