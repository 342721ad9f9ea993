// One scheduler: what scheduler.New builds, without its event handlers.

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// world is one scheduler's state: what scheduler.New builds, minus the event
// handlers, which are replaced by direct calls in a fixed order.
type world struct {
	ctx     context.Context
	logger  klog.Logger
	cancel  context.CancelFunc
	doc     *document
	factory informers.SharedInformerFactory
	cache   internalcache.Cache
	snap    *internalcache.Snapshot
	fw      framework.Framework
	queue   internalqueue.SchedulingQueue
	plugins map[string]fwk.Plugin // the instances the framework itself uses
	list    *schedulerapi.Plugins
	weight  map[string]int64
	next    int // with -sample, where the search for nodes begins
}

func defaultProfile() (schedulerapi.KubeSchedulerProfile, error) {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	cfg := schedulerapi.KubeSchedulerConfiguration{}
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		return schedulerapi.KubeSchedulerProfile{}, err
	}
	return cfg.Profiles[0], nil
}

type nullRecorder struct{}

func (nullRecorder) Eventf(apiruntime.Object, apiruntime.Object, string, string, string, string, ...interface{}) {
}
func (n nullRecorder) WithLogger(klog.Logger) events.EventRecorderLogger { return n }

var registerMetrics sync.Once

func newWorld(doc *document) (w *world, err error) {
	registerMetrics.Do(func() { metrics.Register() })
	ctx, cancel := context.WithCancel(context.Background())
	logger := klog.FromContext(ctx)
	w = &world{ctx: ctx, logger: logger, cancel: cancel, doc: doc, plugins: map[string]fwk.Plugin{}, weight: map[string]int64{}}
	defer func() {
		if err != nil {
			cancel()
		}
	}()

	client := fake.NewSimpleClientset(doc.objs...)
	w.factory = scheduler.NewInformerFactory(client, 0)

	if *flagNewSnapshot {
		known := sets.New[string]()
		for _, n := range doc.nodes {
			known.Insert(n.Name)
		}
		var pods []*v1.Pod
		for _, p := range doc.bound {
			if known.Has(p.Spec.NodeName) {
				pods = append(pods, p)
			}
		}
		w.snap = internalcache.NewSnapshot(pods, doc.nodes)
	} else {
		w.snap = internalcache.NewEmptySnapshot()
	}
	w.cache = internalcache.New(ctx, nil, feature.DefaultFeatureGate.Enabled(features.GenericWorkload))

	var draManager fwk.SharedDRAManager
	if feature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		claims := assumecache.NewAssumeCache(logger, w.factory.Resource().V1().ResourceClaims().Informer(), "ResourceClaim", "", nil)
		opts := resourceslicetracker.Options{
			EnableDeviceTaintRules:   feature.DefaultFeatureGate.Enabled(features.DRADeviceTaintRules),
			EnableConsumableCapacity: feature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
			SliceInformer:            w.factory.Resource().V1().ResourceSlices(),
			KubeClient:               client,
		}
		if opts.EnableDeviceTaintRules {
			opts.TaintInformer = w.factory.Resource().V1beta2().DeviceTaintRules()
			opts.ClassInformer = w.factory.Resource().V1().DeviceClasses()
		}
		tracker, err := resourceslicetracker.StartTracker(ctx, opts)
		if err != nil {
			return nil, err
		}
		draManager = dynamicresources.NewDRAManager(ctx, claims, tracker, w.factory)
	}

	// Wrap every factory so that we hold the very plugin instances the framework runs.
	registry := frameworkplugins.NewInTreeRegistry()
	for name, factory := range registry {
		registry[name] = func(ctx context.Context, args apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
			p, err := factory(ctx, args, h)
			if err == nil {
				w.plugins[name] = p
			}
			return p, err
		}
	}
	prof, err := defaultProfile()
	if err != nil {
		return nil, err
	}
	w.fw, err = frameworkruntime.NewFramework(ctx, registry, &prof,
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(w.factory),
		frameworkruntime.WithSharedDRAManager(draManager),
		frameworkruntime.WithSnapshotSharedLister(w.snap),
		frameworkruntime.WithParallelism(*flagParallelism),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodsInPreBind(frameworkruntime.NewPodsInPreBindMap()),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(w.factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithPodGroupManager(w.cache),
		frameworkruntime.WithEventRecorder(nullRecorder{}),
	)
	if err != nil {
		return nil, err
	}
	w.list = w.fw.ListPlugins()
	for _, p := range w.list.Score.Enabled {
		w.weight[p.Name] = int64(p.Weight)
	}

	pre := map[string]map[string]fwk.PreEnqueuePlugin{schedName: {}}
	for _, p := range w.fw.PreEnqueuePlugins() {
		pre[schedName][p.Name()] = p
	}
	w.queue = internalqueue.NewSchedulingQueue(w.fw.QueueSortFunc(), w.factory,
		internalqueue.WithPodLister(w.factory.Core().V1().Pods().Lister()),
		internalqueue.WithPreEnqueuePluginMap(pre),
		internalqueue.WithPodSigners(map[string]internalqueue.PodSigner{schedName: w.fw.SignPod}),
	)
	w.fw.SetPodNominator(w.queue)
	w.fw.SetPodActivator(w.queue)

	w.factory.Core().V1().Pods().Informer() // the nominator asks the pod lister
	w.factory.Core().V1().Namespaces().Informer()
	w.factory.Start(ctx.Done())
	for typ, ok := range w.factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return nil, fmt.Errorf("informer %v did not sync", typ)
		}
	}
	if doc.async {
		time.Sleep(150 * time.Millisecond) // assume caches are filled by handlers
	}

	for _, n := range doc.nodes {
		w.cache.AddNode(logger, n)
	}
	for _, p := range doc.bound {
		if err := w.cache.AddPod(logger, p); err != nil {
			return nil, fmt.Errorf("cache: pod %s: %w", podKey(p), err)
		}
	}
	for _, p := range doc.pending {
		if sn := p.Spec.SchedulerName; sn != "" && sn != schedName {
			continue
		}
		q := p
		if q.Spec.SchedulerName == "" { // the API server would have filled it in
			q = p.DeepCopy()
			q.Spec.SchedulerName = schedName
		}
		w.queue.Add(ctx, q) // registers status.nominatedNodeName with the nominator, unless gated
	}
	if !*flagNewSnapshot {
		if err := w.cache.UpdateSnapshot(logger, w.snap); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) close() {
	w.queue.Close()
	w.cancel()
	w.factory.Shutdown() // the metrics recorder's goroutine ends within a second by itself
}
