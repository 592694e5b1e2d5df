import { argumentsOf, propertiesOf } from '../config/input-schema.ts';
import { bodyKindOf, destinationsOf } from '../config/sending/destinations.ts';
import type { Tool } from '../config/tool.ts';
import { parseUrlTemplate } from '../http/url-template.ts';

type Definition = { readonly [keyword: string]: unknown };

/**
 * Warnings about objects, and arrays of objects, that become JSON text in a form because nothing says how they are
 * written. Few APIs expect that, but some do.
 */
export function formWarnings(tool: Tool, at: string): { path: string; message: string }[] {
  if (bodyKindOf(tool) !== 'form') return [];
  const properties = propertiesOf(tool.input_schema);
  const declared = argumentsOf(tool.input_schema);
  const names = declared.map(({ name }) => name);
  const inUrl = parseUrlTemplate(tool.url, names).template?.names ?? [];
  const destinations = destinationsOf(tool, declared, { inUrl, inBody: [] });
  return declared
    .filter(({ name, wire }) => {
      const isPlain = wire.style === undefined && wire.content === undefined && typeof wire.value !== 'string';
      return isPlain && destinations.get(name) === 'body' && holdsObjects(properties[name]);
    })
    .map(({ name }) => ({
      path: `${at}.input_schema.${name}`,
      message:
        'an object becomes JSON text in a form; set "style" to "indices" (a[b][0]=1), "brackets" (a[b][]=1) or "deep" (a[b]=1), or to "json" if the API expects JSON text there',
    }));
}

function holdsObjects(definition: unknown): boolean {
  const { type, properties, items } = (definition ?? {}) as Definition;
  if (type === 'object' || (type === undefined && properties !== undefined)) return true;
  return type === 'array' && typeof items === 'object' && items !== null && holdsObjects(items);
}
