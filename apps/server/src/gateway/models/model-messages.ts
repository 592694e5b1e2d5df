import { randomUUID } from 'node:crypto';
import { isJsonObjectText } from '@toolhost/json/object-json';

/**
 * Serializes values together with texts that are JSON already. Arguments that a model wrote keep their digits, and are
 * neither parsed nor serialized again.
 */
export class SplicedJson {
  readonly #placeholder = randomUUID();
  readonly #texts: string[] = [];

  /**
   * Returns a placeholder for an object in JSON text, or for `{}` if the text is not one. The result of the call then
   * tells the model that its arguments are invalid.
   */
  insertObject(text: string): string {
    return this.#add(isJsonObjectText(text) ? text : '{}');
  }

  /** Returns a placeholder for the members of an object in JSON text, to be spread into another object. */
  insertMembers(text: string | undefined): object {
    const membersText = text === undefined || !isJsonObjectText(text) ? '' : text.trim().slice(1, -1).trim();
    return membersText === '' ? {} : { [this.#add(membersText)]: 0 };
  }

  /** Returns the JSON of a value, with the inserted texts. */
  stringify(value: object): string {
    const placeholderPattern = new RegExp(`"${this.#placeholder}:(\\d+)"(:0)?`, 'g');
    return JSON.stringify(value).replaceAll(placeholderPattern, (_, index: string) => this.#texts[Number(index)] ?? '');
  }

  #add(text: string): string {
    return `${this.#placeholder}:${this.#texts.push(text) - 1}`;
  }
}
