// Command vault is a Vault server for tests: Vault's own core and HTTP API, with KV, Kubernetes auth, AppRole and the
// audit log in a file, and none of the other plugins. On storage that is new it initialises and unseals itself, and
// prints one line of JSON with its root token and its unseal key. On storage with data it starts sealed, as Vault does.
// With several addresses, it is a cluster in one process: a core for each, of which one is active. With integrated
// storage, it is one server of a cluster of processes.
package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	kubeauth "github.com/hashicorp/vault-plugin-auth-kubernetes"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/audit"
	"github.com/hashicorp/vault/builtin/credential/approle"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/physical/raft"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
	"github.com/hashicorp/vault/version"
)

// started is the line that the server prints when it has initialised itself.
type started struct {
	Address    string   `json:"address"`
	RootToken  string   `json:"rootToken"`
	UnsealKeys []string `json:"unsealKeys"`
}

// plugins says which plugins are built in, by their names. Without a registry, Vault panics at the first mount.
type plugins map[consts.PluginType]map[string]logical.Factory

func (p plugins) Contains(name string, kind consts.PluginType) bool {
	_, ok := p[kind][name]
	return ok
}

func (p plugins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, ok := p[kind][name]
	return func() (any, error) { return factory, nil }, ok
}

func (p plugins) Keys(kind consts.PluginType) (names []string) {
	for name := range p[kind] {
		names = append(names, name)
	}
	return names
}

func (p plugins) DeprecationStatus(string, consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, true
}

func (p plugins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

func main() {
	listen := flag.String("listen", "127.0.0.1:8200", "the addresses and ports to serve on, with commas: a core for each")
	storage := flag.String("storage", "", "a folder that keeps the data; without it, the data is in memory")
	integrated := flag.Bool("raft", false, "keep the data in that folder by integrated storage, for a cluster of processes")
	certificate := flag.String("tls-cert", "", "a file with the certificate, for TLS; it is read for each connection")
	key := flag.String("tls-key", "", "a file with the key of the certificate")
	initialize := flag.Bool("init", true, "initialise and unseal a server on new storage")
	flag.StringVar(&version.VersionMetadata, "version-metadata", "", "what follows the + of the version")
	flag.Parse()
	server := server{strings.Split(*listen, ","), *storage, *certificate, *key, *integrated, *initialize}
	if err := server.run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type server struct {
	addresses                 []string
	storage, certificate, key string
	integrated, initialize    bool
}

func (s server) run() error {
	logger := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr})
	backend, err := s.backend(logger)
	if err != nil {
		return err
	}
	var listeners []net.Listener
	var cores []*vault.Core
	for _, address := range s.addresses {
		listener, url, err := s.listener(address)
		if err != nil {
			return err
		}
		core, err := s.core(backend, url, logger)
		if err != nil {
			return err
		}
		listeners, cores = append(listeners, listener), append(cores, core)
	}
	for i, core := range cores {
		if err := s.joinable(core, s.addresses[i]); err != nil {
			return err
		}
	}
	// Nothing is served before the line is printed: who sees the server ready finds the line too.
	if err := s.prepare(cores); err != nil {
		return err
	}
	ended := make(chan error)
	for i, core := range cores {
		go func() { ended <- http.Serve(listeners[i], handler(core)) }()
	}
	return <-ended
}

func handler(core *vault.Core) http.Handler {
	return vaulthttp.Handler.Handler(&vault.HandlerProperties{
		Core:           core,
		ListenerConfig: &configutil.Listener{MaxRequestDuration: time.Minute},
	})
}

func (s server) listener(address string) (net.Listener, string, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil || s.certificate == "" {
		return listener, "http://" + address, err
	}
	// A certificate that is replaced counts from the next connection on.
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
		return &pair, err
	}
	config := &tls.Config{GetCertificate: load, MinVersion: tls.VersionTLS12}
	return tls.NewListener(listener, config), "https://" + address, nil
}

func (s server) core(backend physical.Backend, url string, logger hclog.Logger) (*vault.Core, error) {
	secrets := map[string]logical.Factory{"kv": kv.Factory}
	credentials := map[string]logical.Factory{"kubernetes": kubeauth.Factory, "approle": approle.Factory}
	config := &vault.CoreConfig{
		Physical:           backend,
		Logger:             logger,
		DisableMlock:       true,
		RedirectAddr:       url,
		BuiltinRegistry:    plugins{consts.PluginTypeSecrets: secrets, consts.PluginTypeCredential: credentials},
		LogicalBackends:    secrets,
		CredentialBackends: credentials,
		AuditBackends:      map[string]audit.Factory{"file": audit.NewFileBackend},
	}
	if shared, ok := backend.(physical.HABackend); ok {
		config.HAPhysical = shared
	}
	if s.integrated {
		config.ClusterAddr = "https://" + clusterAddress(s.addresses[0])
	}
	return vault.NewCore(config)
}

func (s server) backend(logger hclog.Logger) (physical.Backend, error) {
	if s.storage == "" && len(s.addresses) > 1 {
		return inmem.NewInmemHA(nil, logger)
	}
	if s.storage == "" {
		return inmem.NewInmem(nil, logger)
	}
	folder, err := filepath.Abs(s.storage)
	if err != nil {
		return nil, err
	}
	if s.integrated {
		config := map[string]string{
			"path":    folder,
			"node_id": s.addresses[0],
			// The least: others elect a leader about a second after theirs is gone.
			"performance_multiplier": "1",
			// A server that has joined may vote about that soon.
			"autopilot_update_interval":    "500ms",
			"autopilot_reconcile_interval": "500ms",
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, err
		}
		return raft.NewRaftBackend(config, logger)
	}
	return file.NewFileBackend(map[string]string{"path": folder}, logger)
}

// clusterAddress is where a server listens for the others of its cluster: the port after its own.
func clusterAddress(address string) string {
	at, _ := net.ResolveTCPAddr("tcp", address)
	at.Port++
	return at.String()
}

// joinable has a server with integrated storage listen for the others of its cluster, once it is unsealed.
func (s server) joinable(core *vault.Core, address string) error {
	if !s.integrated {
		return nil
	}
	at, err := net.ResolveTCPAddr("tcp", clusterAddress(address))
	if err != nil {
		return err
	}
	core.SetClusterListenerAddrs([]*net.TCPAddr{at})
	core.SetClusterHandler(handler(core))
	return nil
}

// prepare initialises the storage where it is new, unseals every core with it, and prints what the server prints of it.
func (s server) prepare(cores []*vault.Core) error {
	ctx := context.Background()
	first := cores[0]
	if done, err := first.Initialized(ctx); err != nil || done || !s.initialize {
		return err
	}
	one := &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}
	made, err := first.Initialize(ctx, &vault.InitParams{BarrierConfig: one, RecoveryConfig: one})
	if err != nil {
		return err
	}
	line := started{Address: "http://" + s.addresses[0], RootToken: made.RootToken}
	if s.certificate != "" {
		line.Address = "https://" + s.addresses[0]
	}
	for _, key := range made.SecretShares {
		for _, core := range cores {
			if _, err := core.Unseal(slices.Clone(key)); err != nil {
				return err
			}
		}
		line.UnsealKeys = append(line.UnsealKeys, base64.StdEncoding.EncodeToString(key))
	}
	return json.NewEncoder(os.Stdout).Encode(line)
}
