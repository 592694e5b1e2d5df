import { mostParsed } from '../../domain/json/body-limits.ts';
import { withoutObjects } from '../../domain/json/cut-objects.ts';
import { parseJson } from '../../domain/json/json.ts';
import { LongInput } from '../../domain/json/long-input.ts';

/**
 * Parses a message, or an array of messages, but not the large arguments in them, which become a `LongInput`. Undefined
 * where a tool does not take one: the whole body must be parsed then.
 */
export function parseWithoutArguments(body: Buffer, takes: (tool: string) => boolean): unknown {
  const { text, objects } = withoutObjects(body, ['params', 'arguments']);
  if (text.length > mostParsed.characters || objects.every((object) => object === undefined)) return undefined;
  const posted = parseJson(text);
  for (const [index, message] of (Array.isArray(posted) ? posted : [posted]).entries()) {
    const object = objects[index];
    if (!object) continue;
    const { params } = message as { params: { [name: string]: unknown } };
    if (typeof params.name !== 'string' || !takes(params.name)) return undefined;
    params.arguments = new LongInput(object);
  }
  return posted;
}
