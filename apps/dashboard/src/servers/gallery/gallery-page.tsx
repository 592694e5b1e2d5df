import { Box, SimpleGrid, Stack, Text } from '@mantine/core';
import { Link, useSearchParams } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { type Config, getTools } from '../config.ts';
import { mask } from '../declared.ts';
import { NewPage, NewServer } from '../new/new-server-page.tsx';

const galleryPath = '/servers/new/gallery';

/** Gallery of complete servers for public APIs, to start a new server from: with one stored credential, or with logins. */
export function GalleryPage() {
  const slug = useSearchParams()[0].get('example');
  const selected = galleryExamples.find((example) => example.id === slug);
  if (selected)
    return (
      <NewPage
        title={`New server: ${selected.name}`}
        text={
          selected.need === 'OAuth app'
            ? 'Register an app at the provider first. Then replace the values that begin with YOUR, and enter its client secret.'
            : 'Nothing is stored until you create the server. Remove the tools you do not need.'
        }
        back={{ to: galleryPath, label: 'All examples' }}
      >
        <NewServer key={selected.id} initial={selected.config} />
      </NewPage>
    );
  return (
    <NewPage
      title="Start from an example"
      text="Complete servers for public APIs. You can change everything before you create one."
    >
      <Stack gap="md">
        {Object.entries(needs).map(([need, text]) => (
          <Section key={need} title={need} text={text}>
            <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
              {galleryExamples
                .filter((example) => example.need === need)
                .map((example) => (
                  <ExampleCard key={example.id} example={example} />
                ))}
            </SimpleGrid>
          </Section>
        ))}
      </Stack>
    </NewPage>
  );
}

function ExampleCard({ example: { id, name, description, config } }: { example: GalleryExample }) {
  const toolCount = getTools(config).length;
  return (
    <Box component={Link} to={`${galleryPath}?example=${id}`} className="th-card th-choice" p="md">
      <Text fw={500}>{name}</Text>
      <Text c="dimmed">{description}</Text>
      {toolCount > 1 && (
        <Text size="xs" c="dimmed" mt={4}>
          {toolCount} tools
        </Text>
      )}
    </Box>
  );
}

/** Credentials that examples need, and what to do for them. */
const needs = {
  Open: 'These APIs need no credential.',
  'API key': 'You store one key or token, with which all calls are made.',
  'OAuth app':
    'People log in with their own accounts. You register an app at the provider, and store its client ID and secret.',
};

type GalleryExample = { id: string; config: Config; name: string; description: string; need: keyof typeof needs };

/** Example files, read by the build. */
const files = {
  ...import.meta.glob<{ default: Config }>('../../../../../examples/gallery/*.yaml', { eager: true }),
  ...import.meta.glob<{ default: Config }>('../../../../../examples/logins/*.yaml', { eager: true }),
};

/** Removes masks, which stand for secrets that are stored. A new server has none. */
const withoutMasks = (config: Config) => JSON.parse(JSON.stringify(config).replaceAll(`"${mask}"`, '""')) as Config;

const galleryExamples = Object.entries(files)
  .map(([file, { default: example }]): GalleryExample => {
    const { secrets, limits: _, ...config } = withoutMasks(example);
    const isLogin = file.includes('/logins/');
    return {
      id: `${isLogin ? 'logins-' : ''}${config.slug}`,
      config,
      name: String(config.name),
      description: String(config.description),
      need: isLogin ? 'OAuth app' : secrets === undefined ? 'Open' : 'API key',
    };
  })
  .toSorted((a, b) => a.name.localeCompare(b.name));
