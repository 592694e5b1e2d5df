import { z } from 'zod';
import { serverConfigJsonSchema } from '../describe.ts';
import { fileSections } from './server-file.ts';

type JsonObject = { [key: string]: unknown };

/** The published schema of a file that `toolhost apply` takes: a configuration with the sections beside it. */
export function serverFileJsonSchema(id: string): JsonObject {
  const { properties: sections } = z.toJSONSchema(z.object(fileSections), { io: 'input' }) as {
    properties: JsonObject;
  };
  const { properties, ...schema } = serverConfigJsonSchema(id) as { properties: JsonObject };
  return { ...schema, title: 'Toolhost server file', properties: { ...properties, ...sections } };
}
