import { z } from 'zod';
import { serverConfigSchema } from '../domain/config/server-config.ts';
import { plainNumbers } from '../domain/json/json.ts';
import { AppError } from '../errors.ts';
import { slugInput, versionInput } from './shapes.ts';

const changeable = serverConfigSchema.shape;

export const changeInput = z.strictObject({
  slug: slugInput,
  expected_version: versionInput,
  name: changeable.name.optional(),
  description: changeable.description.nullable(),
  authentication: changeable.authentication.nullable(),
  credentials: changeable.credentials.nullable(),
  oauth: changeable.oauth.nullable(),
  base_url: changeable.base_url.nullable(),
  headers: changeable.headers.nullable(),
  forward_headers: changeable.forward_headers.nullable(),
  variables: changeable.variables.nullable(),
  tool_mode: changeable.tool_mode.nullable(),
  max_answer_tokens: changeable.max_answer_tokens.nullable(),
  views: changeable.views.nullable(),
  tools: changeable.tools.optional(),
});

type Raw = { [field: string]: unknown };

/** @throws AppError invalid */
export function versionOf(raw: Raw): number | undefined {
  const parsed = versionInput.safeParse(plainNumbers(raw.expected_version));
  if (!parsed.success) throw new AppError('invalid', 'expected_version: allowed: a whole number from 1');
  return parsed.data;
}
