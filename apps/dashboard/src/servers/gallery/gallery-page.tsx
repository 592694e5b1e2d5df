import { Box, SimpleGrid, Text } from '@mantine/core';
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
          selected.isLogin
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
      {groups.map(({ title, text, examples }) => (
        <Section key={title} title={title} text={text}>
          <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
            {examples.map((example) => (
              <ExampleCard key={example.id} example={example} />
            ))}
          </SimpleGrid>
        </Section>
      ))}
    </NewPage>
  );
}

function ExampleCard({ example: { id, name, description, config } }: { example: GalleryExample }) {
  const toolCount = getTools(config).length;
  return (
    <Box component={Link} to={`${galleryPath}?example=${id}`} className="th-card th-choice" p="md">
      <Text fw={500}>{name}</Text>
      <Text c="dimmed">{description}</Text>
      <Text size="xs" c="dimmed" mt={4}>
        {toolCount === 1 ? '1 tool' : `${toolCount} tools`}
      </Text>
    </Box>
  );
}

/** Server of the examples. */
type GalleryExample = {
  id: string;
  config: Config;
  name: string;
  description: string;
  hasSecret: boolean;
  isLogin: boolean;
};

/** Example files, read by the build. */
const files = {
  ...import.meta.glob<{ default: Config }>('../../../../../examples/gallery/*.yaml', { eager: true }),
  ...import.meta.glob<{ default: Config }>('../../../../../examples/logins/*.yaml', { eager: true }),
};

/** Removes masks, which stand for secrets that are stored. A new server has none. */
const withoutMasks = (config: Config) => JSON.parse(JSON.stringify(config).replaceAll(`"${mask}"`, '""')) as Config;

const galleryExamples: readonly GalleryExample[] = Object.entries(files)
  .map(([file, { default: example }]) => {
    const { secrets, limits: _, ...config } = withoutMasks(example);
    const isLogin = file.includes('/logins/');
    return {
      id: `${isLogin ? 'logins-' : ''}${config.slug}`,
      config,
      name: String(config.name),
      description: String(config.description),
      hasSecret: secrets !== undefined,
      isLogin,
    };
  })
  .toSorted((a, b) => a.name.localeCompare(b.name));

const groups = [
  {
    title: 'No credential',
    text: 'These APIs are open.',
    examples: galleryExamples.filter(({ isLogin, hasSecret }) => !isLogin && !hasSecret),
  },
  {
    title: 'API key',
    text: 'You store one key or token, with which all calls are made.',
    examples: galleryExamples.filter(({ isLogin, hasSecret }) => !isLogin && hasSecret),
  },
  {
    title: 'OAuth app',
    text: 'People log in with their own accounts. You register an app at the provider, and store its client ID and secret.',
    examples: galleryExamples.filter(({ isLogin }) => isLogin),
  },
];
