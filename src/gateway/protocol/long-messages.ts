import { parseJson } from '../../domain/json/json.ts';
import { LongInput, mostParsed, withoutObjects } from '../../domain/json/long-input.ts';

/** Whether a tool takes a `LongInput`. */
export type TakesLongInput = (tool: string) => boolean;

/**
 * Parses a message, or an array of messages, but not the large arguments in them, which become a `LongInput`. Undefined
 * where that is not possible: the whole body must be parsed then.
 */
export function parseWithoutArguments(body: Buffer, isLong: boolean, takes: TakesLongInput): unknown {
  const { text, objects } = withoutObjects(body, ['params', 'arguments']);
  if (text.length > mostParsed.characters || objects.every((object) => object === undefined)) return undefined;
  const posted = parseJson(text);
  for (const [index, message] of (Array.isArray(posted) ? posted : [posted]).entries()) {
    const object = objects[index];
    if (!object) continue;
    const { params } = message as { params: { [name: string]: unknown } };
    if (typeof params.name !== 'string' || !takes(params.name)) return undefined;
    params.arguments = new LongInput(object, isLong);
  }
  return posted;
}
