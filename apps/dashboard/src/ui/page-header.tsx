import { ActionIcon, Anchor, Box, Group, Text, Title, Tooltip } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { IconChevronLeft, IconHelp } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { Link } from 'react-router';
import { type Guide, getGuideUrl } from '../guides.ts';

type Props = {
  title: string;
  /** Current section of the page, for the browser tab title. */
  section?: string | undefined;
  text?: ReactNode;
  /** Guide to the page. */
  guide?: Guide;
  /** Parent page. */
  back?: { to: string; label: string };
  /** Facts with labels, below the title. */
  facts?: readonly (readonly [label: string, value: ReactNode])[];
  children?: ReactNode;
};

/** Page heading with actions on the right. */
export function PageHeader({ title, section, text, guide, back, facts, children }: Props) {
  useDocumentTitle(`${section === undefined ? '' : `${section} – `}${title} – Toolhost`);
  const address = guide && getGuideUrl(guide);
  return (
    <Box mb="md">
      {back && (
        <Anchor component={Link} to={back.to} size="sm" c="dimmed" className="th-back">
          <Group gap={6} component="span" display="inline-flex">
            <IconChevronLeft size={15} aria-hidden />
            {back.label}
          </Group>
        </Anchor>
      )}
      <Group justify="space-between" gap="sm">
        <Title order={1} miw="9rem" flex="1 1 0">
          {title}
        </Title>
        <Group gap="xs" mih={32}>
          {address && (
            <Tooltip label="Guide">
              <ActionIcon component="a" href={address} target="_blank" rel="noopener" size="lg" aria-label="Guide">
                <IconHelp size={16} stroke={1.5} />
              </ActionIcon>
            </Tooltip>
          )}
          {children}
        </Group>
      </Group>
      {text && (
        <Text c="dimmed" mt={4} maw={720}>
          {text}
        </Text>
      )}
      {facts && (
        <dl className="th-header-facts">
          {facts.map(([label, value]) => (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      )}
    </Box>
  );
}
