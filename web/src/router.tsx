import type { ComponentType } from 'react';
import { createBrowserRouter, type RouteObject } from 'react-router';
import { basePath, loginCheckPath } from './base-path.ts';
import { Frame } from './frame/frame.tsx';
import { RouteFailure } from './frame/route-failure.tsx';
import { HomePage } from './home/home-page.tsx';
import { LoadingPage } from './ui/states/loading.tsx';

/** Returns a route whose page is loaded when it is opened. */
function lazily<Name extends string>(load: () => Promise<Record<Name, ComponentType>>, name: Name) {
  return { lazy: async () => ({ Component: (await load())[name] }) };
}

const serverTabs: RouteObject[] = [
  { index: true, ...lazily(() => import('./servers/home/server-home.tsx'), 'ServerHome') },
  {
    // Both tabs share one editor, so that unsaved input is available in either.
    ...lazily(() => import('./servers/tabs/configuration-tab.tsx'), 'ConfigurationTab'),
    children: [{ path: 'tools' }, { path: 'settings' }],
  },
  { path: 'calls', ...lazily(() => import('./calls/calls-page.tsx'), 'CallBrowser') },
  { path: 'try', ...lazily(() => import('./servers/try/try-tab.tsx'), 'TryTab') },
  { path: 'connect', ...lazily(() => import('./servers/connect/connect-tab.tsx'), 'ConnectTab') },
  { path: 'playground', ...lazily(() => import('./playground/playground-tab.tsx'), 'PlaygroundTab') },
  { path: 'secrets', ...lazily(() => import('./servers/tabs/secrets-tab.tsx'), 'SecretsTab') },
  { path: 'logins', ...lazily(() => import('./servers/tabs/logins-tab.tsx'), 'LoginsTab') },
  { path: 'import', ...lazily(() => import('./servers/import-again/import-tab.tsx'), 'ImportTab') },
  { path: 'versions', ...lazily(() => import('./servers/tabs/versions-tab.tsx'), 'VersionsTab') },
  { path: 'options', ...lazily(() => import('./servers/tabs/options-tab.tsx'), 'OptionsTab') },
];

const pages: RouteObject[] = [
  { index: true, Component: HomePage },
  { path: 'servers', ...lazily(() => import('./servers/list/servers-page.tsx'), 'ServersPage') },
  { path: 'servers/new', ...lazily(() => import('./servers/new/new-server-page.tsx'), 'NewServerPage') },
  { path: 'servers/new/gallery', ...lazily(() => import('./servers/gallery/gallery-page.tsx'), 'GalleryPage') },
  { path: 'servers/new/import', ...lazily(() => import('./servers/import/import-page.tsx'), 'ImportPage') },
  {
    path: 'servers/:slug',
    ...lazily(() => import('./servers/server-page.tsx'), 'ServerPage'),
    children: serverTabs,
  },
  { path: 'keys', ...lazily(() => import('./keys/keys-page.tsx'), 'KeysPage') },
  { path: 'calls', ...lazily(() => import('./calls/calls-page.tsx'), 'CallsPage') },
  { path: 'audit', ...lazily(() => import('./audit/audit-page.tsx'), 'AuditPage') },
  { path: 'usage', ...lazily(() => import('./usage/usage-page.tsx'), 'UsagePage') },
  { path: 'notifications', ...lazily(() => import('./notifications/notifications-page.tsx'), 'NotificationsPage') },
  { path: 'api-reference', ...lazily(() => import('./frame/api-page.tsx'), 'ApiPage') },
  { path: 'settings', ...lazily(() => import('./settings/settings-page.tsx'), 'SettingsPage') },
];

export function createRouter() {
  const routes: RouteObject[] = [
    {
      path: loginCheckPath,
      HydrateFallback: LoadingPage,
      ...lazily(() => import('./servers/login-check/return-page.tsx'), 'LoginReturnPage'),
    },
    {
      path: '/',
      Component: Frame,
      ErrorBoundary: RouteFailure,
      HydrateFallback: LoadingPage,
      children: [
        { ErrorBoundary: RouteFailure, children: pages },
        { path: '*', ...lazily(() => import('./frame/not-found-page.tsx'), 'NotFoundPage') },
      ],
    },
  ];
  return createBrowserRouter(routes, { basename: basePath || '/' });
}
