import { z } from 'zod';
import { parseUrl } from './http/read-url.ts';

const maxIcons = 10;
const maxIconSizes = 10;

/** Media types of icons that the MCP registry accepts. */
const iconTypes = ['image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp'] as const;

const httpsUrl = z
  .string()
  .max(2048)
  .refine((text) => {
    const url = parseUrl(text);
    return url?.protocol === 'https:' && url.username === '' && url.password === '' && !/\s/.test(text);
  }, 'must be an https:// URL without a user name and password');

const iconSchema = z.strictObject({
  src: httpsUrl.describe('https URL of the image.'),
  mimeType: z.enum(iconTypes).optional().describe('Media type of the image.'),
  sizes: z
    .array(z.string().regex(/^(?:[1-9]\d{0,4}x[1-9]\d{0,4}|any)$/, 'allowed: sizes such as 48x48, or any'))
    .min(1)
    .max(maxIconSizes)
    .optional()
    .describe('Sizes of the image, such as 48x48; any for an image that can be scaled.'),
});

/** Fields that present a server to people and directories. */
export const publishingShape = {
  public: z
    .boolean()
    .optional()
    .describe(
      'true: anyone can read the server card and server.json, and the catalog of this service lists the server. Tools remain visible only to callers.',
    ),
  icons: z.array(iconSchema).min(1).max(maxIcons).optional().describe('Icons that clients may show.'),
  website_url: httpsUrl.optional().describe('https URL of the website or the documentation of the server.'),
};

export const iconFields = Object.keys(iconSchema.shape);
